"""Hostile names in every format, and LaTeX documents that compile with whatever stands in them."""

import csv
import html
import io
import random
import re
import shutil
import subprocess
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestrator.publish.formats.csv import guarded
from orchestrator.publish.formats.html import _text
from orchestrator.publish.formats.latex import render, render_standalone
from orchestrator.publish.formats.markdown import escape as markdown
from orchestrator.publish.labels import _ACCENTS, _MATH, _PLAIN, escape, one_line
from orchestrator.publish.tables.build import build
from tests.publish import presets, sweeps

NASTY = r"""100% & $x_1^2$ #{a} \b ~c <i>"d"</i> | `e` 'f' -- é ß η ± µ … 中 😀 !` """


def compiled(document: bytes, folder: Path, engine: str = "pdflatex") -> str:
    """The log of an engine; the run must succeed. A machine without the engine skips the test that compiles."""
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    if engine != "pdflatex" and not found_by_tex("fontspec.sty", *(["luaotfload.sty"] if engine == "lualatex" else [])):
        pytest.skip(f"{engine} is installed without the packages that load fonts")
    (folder / "table.tex").write_bytes(document)
    run = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
    assert (folder / "table.pdf").stat().st_size > 0
    return (folder / "table.log").read_text(errors="replace")


def found_by_tex(*files: str) -> bool:
    """Whether TeX finds all of these files."""
    run = subprocess.run(["kpsewhich", *files], capture_output=True, text=True, check=False)
    return len(run.stdout.splitlines()) == len(files)


def font_installed(name: str) -> bool:
    """Whether fontconfig knows a family of this name."""
    if shutil.which("fc-list") is None:
        return False
    return name in subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=False).stdout


def shown(folder: Path) -> str:
    """The text of the page that was made last, without blanks."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    run = subprocess.run(["pdftotext", "table.pdf", "-"], cwd=folder, capture_output=True, check=True)
    return "".join(unicodedata.normalize("NFKC", run.stdout.decode()).split())


def labelled(labels, caption="Loss"):
    """A table that has each of these labels at the start of a row, one for a title and one for its caption."""
    keys = [f"loss{n}" for n in range(len(labels))]
    layout = {
        "rows": ["loss"], "columns": [], "metrics": ["nmi"], "labels": {"loss": dict(zip(keys, labels, strict=True))},
        "titles": {"loss": labels[0]}, "caption": caption,
    }  # fmt: skip
    grid = sweeps.grid({"loss": keys}, sweeps.spec(tables={"main": layout}), seeds=2)
    return build(grid, "main", sweeps.catalog())


def deep():
    layout = {"rows": ["dataset", "loss", "regularizer"], "columns": ["embedding"], "metrics": list(sweeps.METRICS)}
    compare = {
        "dataset": ("digits", "omniglot"), "loss": sweeps.LOSSES, "regularizer": sweeps.REGULARIZERS,
        "embedding": ("64", "128"),
    }  # fmt: skip
    return sweeps.grid(compare, sweeps.spec(tables={"main": {**layout, "show_tuned": True}}))


def panels():
    found = sweeps.rich()
    table = {**found.spec["tables"]["main"], "panels": [{"dataset": ["digits"]}, {"dataset": ["omniglot"]}]}
    return replace(found, spec={**found.spec, "tables": {"main": table}})


def queued():
    return replace(sweeps.digits(), cells=(), candidates=(), trials=(), state="queued")


def nasty():
    """A grid whose labels, name and caption hold what formats trip over."""
    layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"], "caption": NASTY}
    compare = {"dataset": (NASTY, "=1+1"), "loss": (NASTY, "b\n|c"), "regularizer": ("none", NASTY)}
    return sweeps.grid(compare, sweeps.spec(name=NASTY, tables={"main": layout}))


EXAMPLES = {
    "rich": sweeps.rich, "tiny": sweeps.tiny, "deep": deep, "panels": panels, "nasty": nasty,
    "queued": queued, "svmax": sweeps.svmax,
}  # fmt: skip


class TestCompiled:
    pytestmark = pytest.mark.latex

    @pytest.mark.parametrize("example", EXAMPLES)
    def test_a_document_compiles_without_complaint(self, example, tmp_path):
        document = render_standalone(build(EXAMPLES[example](), "main", sweeps.catalog()))
        if not document.isascii() and not font_installed("Noto Serif CJK SC"):
            pytest.skip("no font with Chinese characters is installed")
        log = compiled(document, tmp_path, "pdflatex" if document.isascii() else "xelatex")
        assert "Overfull" not in log
        assert not re.search(r"^!|LaTeX Warning: (?!Label)|Missing character", log, re.MULTILINE)

    def test_every_table_of_the_papers_goes_into_one_paper(self, tmp_path):
        tables = [render(presets.replica(id_)).decode("ascii") for id_ in presets.printed_tables()]
        assert len(tables) == 25
        assert {one.partition("{table*}")[1] == "" for one in tables} == {True, False}
        head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,graphicx,multirow}\n\\begin{document}\n"
        body = "\\clearpage\n".join(tables)
        log = compiled(f"{head}{body}\\end{{document}}\n".encode("ascii"), tmp_path)
        assert not re.search(r"^!|Missing character|Overfull|Float too large", log, re.MULTILINE)

    def test_a_table_that_is_higher_than_a_page_is_continued(self, tmp_path):
        layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"]}
        compare = {"loss": [f"loss {n}" for n in range(10)], "regularizer": ["a", "b", "c"], "dataset": ["x", "y", "z"]}
        panels = [{"dataset": [one]} for one in "xyz"]
        results = sweeps.grid(compare, sweeps.spec(tables={"main": {**layout, "panels": panels}}), seeds=1)
        text = render(build(results, "main", sweeps.catalog())).decode("ascii")
        assert text.count("\\begin{table}") == 3
        assert text.count("\\caption{Continued.}") == 2
        assert text.count("\\label") == 1
        log = compiled(render_standalone(build(results, "main", sweeps.catalog())), tmp_path)
        assert "Float too large" not in log

    def test_no_cell_title_or_caption_is_read_as_an_option(self, tmp_path):
        starts = [
            "[", "*", "[]", "*[", "[2pt]", "[0, 50)", "-[", " [", "\u200b[", "{[", "\\[", "(", "!", "<", "+", "&", "%",
        ]  # fmt: skip
        labels = [f"{start}x{n}" for n, start in enumerate(starts)]
        compiled(render_standalone(labelled(labels, "[Short] text")), tmp_path)
        text = shown(tmp_path)
        assert "[Short]text." in text
        missing = [label for label in labels if "".join(one_line(label).split()) not in text]
        assert not missing, text

    @pytest.mark.parametrize(("engine", "font", "labels"), [
        ("xelatex", "Noto Serif CJK SC", ["三元组", "[三元] B", "プロキシ", "한국어", "(а) Потери", "Ελλάδα"]),
        ("xelatex", "DejaVu Serif", ["Потери", "Ελλάδα", "[Ж]", "ế", "100% & ž"]),
        ("lualatex", "DejaVu Serif", ["Потери", "Ελλάδα", "[Ж]", "ế", "100% & ž"]),
    ])  # fmt: skip
    def test_text_that_is_not_latin_is_printed_as_it_is(self, engine, font, labels, tmp_path):
        if not font_installed(font):
            pytest.skip(f"the font {font} is not installed")
        log = compiled(render_standalone(labelled(labels, f"{labels[0]}: η")), tmp_path, engine)
        assert "Missing character" not in log
        text = shown(tmp_path)
        missing = [label for label in labels if "".join(unicodedata.normalize("NFKC", label).split()) not in text]
        assert not missing, text

    @pytest.mark.parametrize("engine", ["pdflatex", "xelatex"])
    def test_labels_of_every_block_of_unicode_compile(self, engine, tmp_path):
        random_ = random.Random(3)
        specials = list("[]*{}\\$&#%_^~<>|\"'`-,;:!?@=/()")
        characters = [chr(code) for code in range(0xA1, 0x20000, 0x61) if not 0xD800 <= code < 0xE000]
        labels = [
            "".join(random_.choice(specials) + one for one in characters[at : at + 8])
            for at in range(0, len(characters), 8)
        ] + ["".join(random_.choices(specials, k=6)) for _ in range(60)]
        if engine == "pdflatex":
            labels = [label for label in labels if escape(label).isascii()]
        document = render_standalone(labelled(labels, labels[-1]))
        log = compiled(document, tmp_path, engine)
        assert not re.search(r"^!", log, re.MULTILINE)

    def test_every_character_that_escape_knows_has_a_sign(self, tmp_path):
        accented = [chr(code) for code in range(0xC0, 0x180) if escape(chr(code)).isascii()]
        signs = " ".join(escape(one) or "x" for one in (*_PLAIN, *_MATH, *accented, *(f"a{mark}" for mark in _ACCENTS)))
        log = compiled(
            f"\\documentclass{{article}}\\begin{{document}}{signs}\\end{{document}}".encode("ascii"), tmp_path
        )
        assert "Missing character" not in log


def test_a_table_says_which_engines_read_it():
    latin = render(labelled(["[Ünïcode] η", "b"]))
    assert latin.isascii()
    assert b"XeLaTeX" not in latin
    other = labelled(["三元组", "b"])
    assert "三元组" in render(other).decode()
    assert "XeLaTeX or LuaLaTeX" in render(other).decode().split("\\begin{table}")[0]
    document = render_standalone(other).decode()
    assert "Compile this document with XeLaTeX or LuaLaTeX." in document.partition("\\documentclass")[0]


def test_a_greek_index_is_set_below_its_letter():
    assert escape("s_μ ↓") == r"$s_{\mu}$ $\downarrow$"
    assert escape("(s_μ)") == r"($s_{\mu}$)"
    assert escape("train/s_mu s_μx _μ") == r"train/s\_mu s\_$\mu$x \_$\mu$"


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
        assert escape(text) == expected


@given(st.text())
def test_tex_is_balanced(text):
    found = escape(text)
    assert not found.startswith(("[", "*"))
    bare = re.sub(r"\\[\\{}$&#%_]", "", found)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not set("&#%_") & set(re.sub(r"\$[^$]*\$", "", bare).replace("\\", ""))


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_tex_loses_no_ascii(text):
    back = re.sub(r"^\{([\[*])\}", r"\1", escape(text))
    for sign, written in (
        ("\x00", "\\textbackslash{}"), ("~", "\\textasciitilde{}"), ("^", "\\textasciicircum{}"),
        ("<", "\\textless{}"), (">", "\\textgreater{}"), ("|", "\\textbar{}"), ("`", "\\textasciigrave{}"),
    ):  # fmt: skip
        back = back.replace(written, sign)
    back = re.sub(r"\\([{}$&#%_])", r"\1", back.replace("\\{\\}", "\x01")).replace("\x01", "\x02")
    kept = back.replace("\x02", "{}").replace("\x00", "\\")
    # What separates ligatures adds {}, and a double quote becomes two single quotes: compare without these.
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
