"""docs/your-paper.md followed to the letter, and what its folder of printed tables may not hold."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import httpx
import pytest

from orchestrator.host.identity import ensure_identity
from orchestrator.publish import papers
from orchestrator.publish.bundle import rebuilding
from orchestrator.service import tables
from tests.conftest import ROOT
from tests.pages import PAGES, blocks, commands
from tests.served import Served, serving
from workers import catalog
from workers.catalog import LiveCatalog, PartSourceError

PAGE = PAGES["docs/your-paper.md"]
TEMPLATE = ROOT / "docs" / "examples" / "paper"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """The template, copied as the page says."""
    return Path(shutil.copytree(TEMPLATE, tmp_path / "my-paper", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def served(paper: Path, tmp_path: Path) -> Iterator[Served]:
    (home := tmp_path / "home").mkdir(mode=0o700)
    with serving(home, METRICSWEEP_PARTS=str(paper), METRICSWEEP_ENGINE="inline") as standing:
        yield standing


@pytest.mark.soak
def test_the_page_leads_from_the_template_to_a_report_and_claims(served: Served, paper: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    program = Path(sys.executable).parent
    environment = {key: value for key, value in os.environ.items() if not key.startswith("METRICSWEEP_")} | {
        "METRICSWEEP_PARTS": str(paper), "METRICSWEEP_URL": served.client.url, "PYTHONPATH": str(ROOT),
        "METRICSWEEP_TOKEN": ensure_identity(served.home).secret, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}",
    }  # fmt: skip
    outputs = {}
    for command in commands(PAGE):
        if command.startswith(("export ", "metricsweep serve", "cp ")):  # both fixtures
            continue
        few = command.replace("--write", "--write --seeds 3") if "benchmarks.claims" in command else command
        done = subprocess.run(
            ["sh", "-c", few], check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        outputs[command] = done.stdout
        assert done.returncode == 0, (few, done.stdout, done.stderr)
    assert "95.95" in outputs["metricsweep published MINE-T1"]
    report = outputs["metricsweep reproduction MINE"]
    assert "not reproduced" in next(line for line in report.splitlines() if "95.95" in line)
    assert "\\begin{longtable}" in (tmp_path / "mine.tex").read_text(encoding="utf-8")
    assert "takes down the variance" in (paper / "claims.md").read_text(encoding="utf-8")
    pages = {
        path: httpx.get(
            f"{served.client.url}{path}", headers={"Authorization": f"Bearer {ensure_identity(served.home).secret}"}
        ).text
        for path in ("/reproduction", "/reproduction/MINE", "/submit?preset=own/mine_t1", "/catalog")
    }
    assert "Your name: Soft neighbours" in pages["/reproduction"]
    assert "95.95" in pages["/reproduction/MINE"]
    assert "Your papers" in pages["/submit?preset=own/mine_t1"]
    assert "published: MINE-T1" in pages["/submit?preset=own/mine_t1"]
    assert "Soft neighbours" in pages["/catalog"]
    bundle = tmp_path / "a.zip"
    with bundle.open("wb") as file:
        served.client.bundle(1, file)
    assert tables.rebuild(bundle).identical, "without the folder"
    assert "MINE-T1" in papers.names(rebuilding.unpacked(bundle).catalog.published)


def test_the_example_of_a_file_can_be_read(paper: Path) -> None:
    (lines,) = (block for block in blocks(PAGE, "text") if block.startswith("dataset,"))
    (paper / "published" / "mine_t1.csv").write_text(lines, encoding="utf-8")
    table = papers.load("mine-t1", catalog.load(paper).published)
    assert [number.bold for number in table.numbers] == [False, False, True, False]
    assert table.find({"data": "CUB", "loss": "proxy_anchor", "reg": "SEC"}, "R@1").tuned == {"regularizer.eta": "0.5"}


INDEX = (TEMPLATE / "published" / "index.toml").read_text(encoding="utf-8")
HEAD = "dataset,loss,regularizer,recall@1\n"
WRONG: Final[Mapping[str, tuple[Mapping[str, str | bytes | None], list[str]]]] = {
    "no index": ({"index.toml": None}, ["index.toml is missing"]),
    "no TOML": ({"index.toml": "[papers"}, ["index.toml: "]),
    "an unknown field": ({"index.toml": f'{INDEX}\n[tables.MINE-T2]\npaper = "MINE"\ntitel = "x"\n'}, [
        "index.toml: tables.MINE-T2.file: is missing", "tables.MINE-T2.title: is missing", "tables.MINE-T2.titel",
    ]),
    "names": ({"index.toml": INDEX.replace("[tables.MINE-T1]", "[tables.sec-t3]").replace('= "MINE"', '= "OURS"')}, [
        "'SEC-T3' is the name of a built-in paper or table", "sec-t3: no paper 'OURS' under [papers]",
    ]),
    "no file": ({"index.toml": INDEX.replace("mine_t1.csv", "../mine_t1.csv")}, ["there is no file '../mine_t1.csv'"]),
    "semicolons": ({"mine_t1.csv": HEAD.replace(",", ";")}, ["mine_t1.csv: expected a first line with axes"]),
    "empty": ({"mine_t1.csv": ""}, ["found 0 columns, 0 of them axes, and 0 rows"]),
    "a quote": ({"mine_t1.csv": f'{HEAD}digits,"triplet,none,1\n'}, ["mine_t1.csv: unexpected end of data"]),
    "columns": ({"mine_t1.csv": "dataset,loss,regulariser,recall@1,recall@1,\ndigits,triplet,none,1,2,3\n"}, [
        "mine_t1.csv:1: column 3 'regulariser': did you mean 'regularizer'?", "column 5 'recall@1'", "column 6 ''",
    ]),
    "cells": ({"mine_t1.csv": f"{HEAD}digits,triplet,none,60;82\ndigits,triplet,sec\ndigits,triplet,none,1.0±x2\n"}, [
        "mine_t1.csv:2: recall@1: expected a number such as 60.82", "found '60;82'",
        "mine_t1.csv:3: expected 4 cells, found 3", "mine_t1.csv:4: recall@1: expected a number", "found '1.0±x2'",
        "mine_t1.csv:4: the labels digits, triplet, none are those of line 2",
    ]),
    "units": ({"index.toml": INDEX.replace('file = "mine_t1', 'units = {nmi = "number"}\nfile = "mine_t1')}, [
        "mine_t1.csv has no column 'nmi' of `units`",
    ]),
    "another encoding": ({"mine_t1.csv": b"\xff\xfe\x00"}, ["mine_t1.csv: expected text in UTF-8"]),
}  # fmt: skip


def test_wrong_printed_tables_are_refused_with_file_and_line_all_at_once(paper: Path) -> None:
    failures = []
    known = LiveCatalog.at(paper, papers.check)
    for case, (files, messages) in WRONG.items():
        before = {name: (paper / "published" / name).read_bytes() for name in files}
        for name, content in files.items():
            (paper / "published" / name).unlink()
            if content is not None:
                (paper / "published" / name).write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            known.refresh()
            failures.append(f"{case}: nothing is refused")
        except PartSourceError as error:
            failures += [f"{case}: no {message!r} in: {error}" for message in messages if message not in str(error)]
        if "MINE-T1" not in papers.names(known.published):
            failures.append(f"{case}: the former tables are gone")
        for name, former in before.items():
            (paper / "published" / name).write_bytes(former)
    assert failures == [], "\n\n".join(failures)


def test_an_edited_table_is_read_again(paper: Path) -> None:
    known = LiveCatalog.at(paper, papers.check)
    file = paper / "published" / "mine_t1.csv"
    file.write_text("\ufeff" + file.read_text(encoding="utf-8").replace("95.95", "93.283"), encoding="utf-8")
    known.refresh()
    assert [it.printed for it in papers.load("MINE-T1", known.published).numbers if it.value == 0.93283] == [
        "93.283±0.40"
    ]
