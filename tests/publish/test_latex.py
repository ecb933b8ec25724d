import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.publish.formats.latex import render, render_standalone
from orchestrator.publish.table import build
from orchestrator.publish.tex_characters import _ACCENTS, _MATH, _PLAIN, escape
from tests.publish import sweeps
from tests.publish.test_escaping import nasty

pdflatex = [
    pytest.mark.latex,
    pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed"),
]


def compiled(document: bytes, folder: Path) -> str:
    """The log of pdflatex; the run must succeed."""
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
    "queued": queued,
}  # fmt: skip


class TestCompiled:
    pytestmark = pdflatex

    @pytest.mark.parametrize("example", EXAMPLES)
    def test_a_document_compiles_without_complaint(self, example, tmp_path):
        log = compiled(render_standalone(build(EXAMPLES[example](), "main", sweeps.catalog())), tmp_path)
        assert "Overfull" not in log or example == "nasty"  # the page's width is an estimate
        assert not re.search(r"^!|LaTeX Warning: (?!Label)|Missing character", log, re.MULTILINE)

    def test_two_tables_go_into_a_paper_of_two_columns(self, tmp_path):
        wide, narrow = (render(build(one(), "main", sweeps.catalog())) for one in (sweeps.rich, sweeps.tiny))
        assert b"table*" in wide
        assert b"table*" not in narrow
        paper = (
            b"\\documentclass[twocolumn]{article}\n\\usepackage{booktabs,multirow}\n\\begin{document}\n"
            + wide
            + narrow
            + b"Text.\\end{document}\n"
        )
        compiled(paper, tmp_path)

    def test_every_character_that_escape_knows_has_a_sign(self, tmp_path):
        accented = [chr(code) for code in range(0xC0, 0x180)]
        signs = " ".join(escape(one) or "x" for one in (*_PLAIN, *_MATH, *accented, *(f"a{mark}" for mark in _ACCENTS)))
        log = compiled(
            f"\\documentclass{{article}}\\begin{{document}}{signs}\\end{{document}}".encode("ascii"), tmp_path
        )
        assert "Missing character" not in log


def test_the_fragment_is_ascii_and_names_its_packages():
    lines = render(build(sweeps.rich(), "main", sweeps.catalog())).decode("ascii").splitlines()
    assert lines[1] == "% Needs \\usepackage{booktabs,multirow}."
    assert lines[2] == "\\begin{table*}[tbp]"
    assert lines[-1] == "\\end{table*}"


def test_signs_of_deviations_stand_in_one_line():
    text = render(build(sweeps.digits(), "main", sweeps.catalog())).decode("ascii")
    assert "±" not in text
    assert re.search(r"59\.80\{\\scriptsize\$\\pm\$2\.91\\phantom\{0\}\}", text)
    assert re.search(r"\{\\scriptsize\$\\pm\$15\.08\}", text)
