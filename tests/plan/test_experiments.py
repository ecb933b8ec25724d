"""The page of presets lists every experiment of the papers once: its preset, and whether that is what the paper did.

A preset that differs from its paper's text says so under `Deviates:` in its first comment, which is YAML: the sentence
of the paper, and what is done here. Held-out classes and seeds, in which all presets differ, stand on the page.
"""

import re
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "presets.md"
HEADING = "## Every experiment of the papers"


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
    names = [row.experiment for row in rows()]
    assert len(names) == len({*names}) == 61, "52 experiments, 5 claims and 4 questions of reviews"


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


class Deviation(NamedTuple):
    """What a preset does otherwise than its paper."""

    paper: str
    here: str


def deviations(preset: str) -> list[Deviation]:
    """Those that the first comment of a preset lists."""
    head = (ROOT / "sweeps" / f"{preset}.yaml").read_text(encoding="utf-8").partition("\nversion:")[0]
    found = re.search(r"^# Deviates:\n((?:#  .*\n)+)", head, re.MULTILINE)
    if found is None:
        assert not re.search(r"Deviat(es|ions?):", head), f"{preset}: write `Deviates:` as a list"
        return []
    listed = yaml.safe_load("\n".join(line.removeprefix("#") for line in found[1].splitlines()))
    return [Deviation(**one) for one in listed]


def test_the_state_of_a_preset_is_that_of_its_list_of_deviations() -> None:
    wrong = []
    for row in rows():
        if row.state not in {"exact", "deviates"}:
            assert row.why, row
            continue
        found = deviations(row.preset.strip("`"))
        expected = ("deviates" if found else "exact", "; ".join(one.here for one in found))
        if (row.state, row.why) != expected:
            wrong.append(f"| {row.experiment} | {row.preset} | {expected[0]} | {expected[1]} |")
    assert wrong == [], "the rows of docs/presets.md as the presets have them"


def test_deviations_quote_the_papers(shared: Path) -> None:
    files = {"sec": "sec", "reb": "sec_author_response", "svmax": "svmax", "isa": "proxy_isa"}
    wrong = []
    for row in rows():
        if row.state == "deviates":
            paper = files[row.experiment.partition("-")[0].lower()]
            text = " ".join((shared / "papers" / f"{paper}.txt").read_text(encoding="utf-8").split())
            wrong += [(row.preset, one.paper) for one in deviations(row.preset.strip("`")) if one.paper not in text]
    assert wrong == []
