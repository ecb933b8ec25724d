import random
import re
import shutil
import subprocess
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.publish.formats.latex import render, render_standalone
from orchestrator.publish.labels import _ACCENTS, _MATH, _PLAIN, escape, one_line
from orchestrator.publish.tables.build import build_own
from tests.publish import presets, sweeps
from tests.publish.test_escaping import nasty


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
    return build_own(grid, "main", sweeps.catalog())


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


EXAMPLES = {
    "rich": sweeps.rich, "tiny": sweeps.tiny, "deep": deep, "panels": panels, "nasty": nasty,
    "queued": queued, "svmax": sweeps.svmax,
}  # fmt: skip


class TestCompiled:
    pytestmark = pytest.mark.latex

    @pytest.mark.parametrize("example", EXAMPLES)
    def test_a_document_compiles_without_complaint(self, example, tmp_path):
        document = render_standalone(build_own(EXAMPLES[example](), "main", sweeps.catalog()))
        if not document.isascii() and not font_installed("Noto Serif CJK SC"):
            pytest.skip("no font with Chinese characters is installed")
        log = compiled(document, tmp_path, "pdflatex" if document.isascii() else "xelatex")
        assert "Overfull" not in log
        assert not re.search(r"^!|LaTeX Warning: (?!Label)|Missing character", log, re.MULTILINE)

    def test_every_table_of_the_papers_goes_into_one_paper(self, tmp_path):
        tables = [render(presets.replica(id_)).decode("ascii") for id_ in presets.printed_tables()]
        assert len(tables) == 23
        assert {one.partition("{table*}")[1] == "" for one in tables} == {True, False}
        head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,graphicx,multirow}\n\\begin{document}\n"
        body = "\\clearpage\n".join(tables)
        log = compiled(f"{head}{body}\\end{{document}}\n".encode("ascii"), tmp_path)
        assert not re.search(r"^!|Missing character|Overfull|Float too large", log, re.MULTILINE)

    def test_a_table_that_is_higher_than_a_page_is_continued(self, tmp_path):
        layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"]}
        compare = {"loss": [f"loss {n}" for n in range(10)], "regularizer": ["a", "b", "c"], "dataset": ["x", "y", "z"]}
        panels = [{"dataset": [one]} for one in "xyz"]
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": {**layout, "panels": panels}}), seeds=1)
        text = render(build_own(outcomes, "main", sweeps.catalog())).decode("ascii")
        assert text.count("\\begin{table}") == 3
        assert text.count("\\caption{Continued.}") == 2
        assert text.count("\\label") == 1
        log = compiled(render_standalone(build_own(outcomes, "main", sweeps.catalog())), tmp_path)
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

    @pytest.mark.parametrize(
        ("engine", "font", "labels"),
        [
            ("xelatex", "Noto Serif CJK SC", ["三元组", "[三元] B", "プロキシ", "한국어", "(а) Потери", "Ελλάδα"]),
            ("xelatex", "DejaVu Serif", ["Потери", "Ελλάδα", "[Ж]", "ế", "100% & ž"]),
            ("lualatex", "DejaVu Serif", ["Потери", "Ελλάδα", "[Ж]", "ế", "100% & ž"]),
        ],
    )  # fmt: skip
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
