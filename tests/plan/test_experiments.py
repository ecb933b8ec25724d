"""The page of presets lists every experiment of the papers once: its preset, and whether that is what the paper did."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "presets.md"
HEADING = "## Every experiment of the papers"

EXPERIMENTS = {
    "SEC": "T2 T3 T4 T5 T8 T9 T10 T11 T12 F1 F4 F5 F6 F7 F8 F9 C1 C2 C3",
    "REB": "T1 T2 T4 T5 TEXT F1 F2",
    "SVMAX": "T1 T2 T3 T4 T5 F2 F3 F4 F5 F6 F7 F9 F10 F11 F12 F13 F14 F15",
    "ISA": "T1 T2 T3 T4 F2 F6 F8 F9 F10 F11 C1",
}
"""The tables (T), figures (F) and claims in the text (C) by paper; REB is SEC's author response."""

EVERY = [f"{paper}-{one}" for paper, ones in EXPERIMENTS.items() for one in ones.split()]


class Row(NamedTuple):
    """One line of the list."""

    experiment: str
    preset: str
    state: str
    why: str


def rows() -> list[Row]:
    section = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def test_every_experiment_stands_there_once() -> None:
    assert len(EVERY) == 55, "51 experiments and 4 claims"
    assert sorted(row.experiment for row in rows()) == sorted(EVERY)


def test_what_is_named_exists_and_what_is_missing_does_not() -> None:
    for row in rows():
        file = f"{row.experiment.lower().replace('-', '_')}.yaml"
        assert row.state in {"exact", "deviates", "measured", "missing"}, row
        if row.state == "measured":
            assert (ROOT / f"{row.preset.strip('`').replace('.', '/')}.py").is_file(), row
            continue
        assert row.preset == ("" if row.state == "missing" else f"`{Path(file).stem}`"), row
        for folder in ("sweeps", "sweeps/quick"):
            assert (ROOT / folder / file).is_file() is (row.state != "missing"), row


def test_what_is_not_exact_says_why() -> None:
    assert [row for row in rows() if bool(row.why) is (row.state == "exact")] == []


def test_every_preset_of_a_paper_is_listed() -> None:
    papers = re.compile(rf"({'|'.join(paper.lower() for paper in EXPERIMENTS)})_")
    shown = {row.preset for row in rows() if row.state != "measured"}
    found = {path.stem for folder in ("sweeps", "sweeps/quick") for path in (ROOT / folder).glob("*.yaml")}
    assert {f"`{name}`" for name in found if papers.match(name)} == shown - {""}
