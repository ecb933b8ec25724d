import csv
import html
import io
import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestrator.publish.formats.csv import guarded
from orchestrator.publish.formats.html import _text
from orchestrator.publish.formats.markdown import escape as markdown
from orchestrator.publish.labels import escape as tex
from orchestrator.publish.labels import one_line
from tests.publish import sweeps

NASTY = r"""100% & $x_1^2$ #{a} \b ~c <i>"d"</i> | `e` 'f' -- é ß η ± µ … 中 😀 !` """


def test_tex():
    for text, expected in (
        ("50 % & more_less", r"50 \% \& more\_less"), (r"a\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"), ("{x}$#", r"\{x\}\$\#"),
        ("a<b>c|d", r"a\textless{}b\textgreater{}c\textbar{}d"), ("±−µη", r"$\pm$$-$$\mu$$\eta$"),
        ("é ü ñ ç å ß Ł", r"\'{e} \"{u} \~{n} \c{c} \r{a} \ss{} \L{}"), ("a--b---c", "a-{}-b-{}-{}-c"),
        ("–—…", r"-----\ldots{}"), ("中 Потери", "中 Потери"), ("Ελλάδα", "Ελλάδα"), ("x 🚀", "x [U+1F680]"),
        ("\ue000", "{[}U+E000]"), ("[12] [3]", "{[}12] [3]"), ("* (ours)", "{*} (ours)"), ("x\ny\tz", "x y z"),
        ("\u202edetsrever\u200b", "detsrever"),
    ):  # fmt: skip
        assert tex(text) == expected


@given(st.text())
def test_tex_is_balanced(text):
    found = tex(text)
    assert not found.startswith(("[", "*"))
    bare = re.sub(r"\\[\\{}$&#%_]", "", found)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("&#%_") & set(re.sub(r"\$[^$]*\$", "", bare).replace("\\", ""))


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_tex_loses_no_ascii(text):
    back = re.sub(r"^\{([\[*])\}", r"\1", tex(text))
    for sign, written in (
        ("\x00", "\\textbackslash{}"), ("~", "\\textasciitilde{}"), ("^", "\\textasciicircum{}"),
        ("<", "\\textless{}"), (">", "\\textgreater{}"), ("|", "\\textbar{}"), ("`", "\\textasciigrave{}"),
    ):  # fmt: skip
        back = back.replace(written, sign)
    back = re.sub(r"\\([{}$&#%_])", r"\1", back.replace("\\{\\}", "\x01")).replace("\x01", "\x02")
    kept = back.replace("\x02", "{}").replace("\x00", "\\")
    # What separates ligatures adds {}, and a double quote becomes two single ones: compare without these.
    assert kept.replace("{}", "").replace("'", "") == one_line(text).replace("{}", "").replace("'", "").replace('"', "")


@given(st.text())
def test_html_reads_back(text):
    written = _text(text).encode("ascii", "xmlcharrefreplace").decode()
    assert not set("<>\"'") & set(written)
    # Browsers turn a few references to control characters into others; those are gone before.
    assert html.unescape(written) == one_line(text)


@given(st.text(min_size=1))
def test_markdown_stays_in_its_cell(text):
    found = markdown(text)
    assert "\n" not in found
    assert "|" not in re.sub(r"\\[\\|`*_{}\[\]#~$]", "", found)
    assert "<" not in found


@given(st.text(alphabet="aZ9é_*μ -`.([\\~"))
def test_markdown_shows_the_text(text):
    """But for blanks at its ends, which no cell shows, and after a letter, since a line may begin a list."""
    (block,) = MarkdownIt("gfm-like", {"linkify": False}).parseInline(f"x{markdown(text)}")
    assert all(one.type in ("text", "text_special") for one in block.children)
    assert "".join(one.content for one in block.children).strip() == f"x{one_line(text)}".strip()


def test_markdown_leaves_words_readable():
    assert markdown("proxy_nca and s_μ, _x, y_ and a__b") == r"proxy_nca and s_μ, \_x, y\_ and a\_\_b"


@given(st.text())
def test_csv_reads_back_and_is_no_formula(text):
    written = io.StringIO(newline="")
    csv.writer(written).writerow([guarded(text), "end"])
    ((first, last),) = csv.reader(io.StringIO(written.getvalue(), newline=""))
    assert last == "end"
    assert first in {text, f"'{text}"}
    assert first[:1] not in {"=", "+", "-", "@"} or _number(first)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_formulas_are_guarded_and_numbers_and_plain_text_are_not():
    formulas = ["=1+1", "+cmd", "-x", "@sum", "\t=1", "  =1", "＝1", "-inf"]
    assert [guarded(text) for text in formulas] == [f"'{text}" for text in formulas]
    plain = ["-0.5", "+1e-3", "a=b", "", "1-2"]
    assert [guarded(text) for text in plain] == plain


def nasty():
    """A grid whose labels, name and caption hold what formats trip over."""
    layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"], "caption": NASTY}
    compare = {"dataset": (NASTY, "=1+1"), "loss": (NASTY, "b\n|c"), "regularizer": ("none", NASTY)}
    return sweeps.grid(compare, sweeps.spec(name=NASTY, tables={"main": layout}))
