import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.publish.formats.latex import render, render_standalone
from orchestrator.publish.tables.table import build
from orchestrator.publish.tables.tex_characters import _ACCENTS, _MATH, _PLAIN, escape
from tests.publish import presets, sweeps
from tests.publish.test_escaping import nasty


def compiled(document: bytes, folder: Path) -> str:
    """The log of pdflatex; the run must succeed. A machine without it skips whichever test compiles."""
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    (folder / "table.tex").write_bytes(document)
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-3000:]
    assert (folder / "table.pdf").stat().st_size > 0
    return (folder / "table.log").read_text(errors="replace")


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
    "digits": sweeps.digits, "rich": sweeps.rich, "tiny": sweeps.tiny, "deep": deep, "panels": panels, "nasty": nasty,
    "queued": queued, "svmax": sweeps.svmax,
}  # fmt: skip


class TestCompiled:
    pytestmark = pytest.mark.latex

    @pytest.mark.parametrize("example", EXAMPLES)
    def test_a_document_compiles_without_complaint(self, example, tmp_path):
        log = compiled(render_standalone(build(EXAMPLES[example](), "main", sweeps.catalog())), tmp_path)
        assert "Overfull" not in log
        assert not re.search(r"^!|LaTeX Warning: (?!Label)|Missing character", log, re.MULTILINE)

    def test_two_tables_go_into_a_paper_of_two_columns(self, tmp_path):
        wide, narrow = (render(build(one(), "main", sweeps.catalog())) for one in (sweeps.rich, sweeps.tiny))
        assert b"table*" in wide
        assert b"table*" not in narrow
        paper = (
            b"\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,graphicx,multirow}\n\\begin{document}\n"
            + wide
            + narrow
            + b"Text.\\end{document}\n"
        )
        compiled(paper, tmp_path)

    def test_every_table_of_the_papers_goes_into_one_paper(self, tmp_path):
        tables = [render(presets.replica(id_)).decode("ascii") for id_ in presets.printed_tables()]
        assert len(tables) == 23
        head = "\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,graphicx,multirow}\n\\begin{document}\n"
        body = "\\clearpage\n".join(tables)
        log = compiled(f"{head}{body}\\end{{document}}\n".encode("ascii"), tmp_path)
        assert not re.search(r"^!|Missing character|Overfull|Float too large", log, re.MULTILINE)

    @pytest.mark.parametrize("id_", ["SEC-T3", "SEC-T10", "SVMax-T4", "ISA-T2"])
    def test_so_does_a_document_of_each_kind(self, id_, tmp_path):
        log = compiled(render_standalone(presets.replica(id_)), tmp_path)
        assert not re.search(r"^!|Missing character|Overfull|Float too large", log, re.MULTILINE)

    def test_a_table_that_is_higher_than_a_page_is_continued(self, tmp_path):
        layout = {"rows": ["loss", "regularizer"], "columns": ["dataset"], "metrics": ["nmi"]}
        compare = {"loss": [f"loss {n}" for n in range(10)], "regularizer": ["a", "b", "c"], "dataset": ["x", "y", "z"]}
        panels = [{"dataset": [one]} for one in "xyz"]
        outcomes = sweeps.grid(compare, sweeps.spec(tables={"main": {**layout, "panels": panels}}), seeds=1)
        text = render(build(outcomes, "main", sweeps.catalog())).decode("ascii")
        assert text.count("\\begin{table}") == 3
        assert text.count("\\caption{Continued.}") == 2
        assert text.count("\\label") == 1
        log = compiled(render_standalone(build(outcomes, "main", sweeps.catalog())), tmp_path)
        assert "Float too large" not in log

    def test_every_character_that_escape_knows_has_a_sign(self, tmp_path):
        accented = [chr(code) for code in range(0xC0, 0x180)]
        signs = " ".join(escape(one) or "x" for one in (*_PLAIN, *_MATH, *accented, *(f"a{mark}" for mark in _ACCENTS)))
        log = compiled(
            f"\\documentclass{{article}}\\begin{{document}}{signs}\\end{{document}}".encode("ascii"), tmp_path
        )
        assert "Missing character" not in log


def test_the_fragment_is_ascii_and_names_its_packages():
    lines = render(build(sweeps.rich(), "main", sweeps.catalog())).decode("ascii").splitlines()
    assert lines[1] == "% Needs \\usepackage{booktabs,graphicx,multirow}."
    assert lines[2] == "\\begin{table*}[tbp]"
    assert lines[-1] == "\\end{table*}"


def test_signs_of_deviations_stand_in_one_line():
    text = render(build(sweeps.digits(), "main", sweeps.catalog())).decode("ascii")
    assert "±" not in text
    assert re.search(r"59\.80\{\\scriptsize\$\\pm\$2\.91\\phantom\{0\}\}", text)
    assert re.search(r"\{\\scriptsize\$\\pm\$15\.08\}", text)


def test_panels_of_equal_columns_share_a_tabular_and_others_do_not():
    both = render(build(panels(), "main", sweeps.catalog())).decode("ascii")
    assert both.count("\\toprule") == 2
    assert both.count("\\begin{tabular}") == 1
    unequal = sweeps.svmax(panels=[{"optimizer.lr": ["0.01"]}, {"optimizer.lr": ["0.001"]}])
    assert render(build(unequal, "main", sweeps.catalog())).decode("ascii").count("\\begin{tabular}") == 3


def test_a_heading_stands_above_rows_that_say_more_than_its_first():
    text = render(build(sweeps.svmax(), "main", sweeps.catalog())).decode("ascii")
    assert "    Triplet\\dag{} &  & 0.598" in text
    assert "\\multirow" not in text.split("\\begin{tabular}")[1]


def test_signs_are_set_as_mathematics():
    text = render(build(sweeps.svmax(), "main", sweeps.catalog())).decode("ascii")
    assert "& $+$1.58 &" in text
    assert "& $-$7.78 &" in text


def test_a_greek_index_is_set_below_its_letter():
    assert escape("s_μ ↓") == r"$s_{\mu}$ $\downarrow$"
    assert escape("(s_μ)") == r"($s_{\mu}$)"
    assert escape("train/s_mu s_μx _μ") == r"train/s\_mu s\_$\mu$x \_$\mu$"
