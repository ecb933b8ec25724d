"""Every preset's layout, filled with the paper's numbers, against the printed table: character by character.

The printed characters are read from the CSV files here, not by the reader that fills the layout.
"""

import csv
import tomllib
from functools import cache
from importlib.resources import files

from orchestrator.publish.tables.table_data import TableCell
from tests.publish.presets import catalog, printed_tables, recipes, replica, results

PUBLISHED = files("orchestrator.publish") / "published"
INDEX = tomllib.loads((PUBLISHED / "index.toml").read_text(encoding="utf-8"))["tables"]

PRESETS = {
    "SEC-T2", "SEC-T3", "SEC-T8", "SEC-T9", "SEC-T10", "REB-T2", "REB-T4", "REB-T5", "REB-TEXT", "SVMax-T1", "SVMax-T2",
    "SVMax-T3", "SVMax-T4", "SVMax-T5", "SEC-T5", "SEC-T12", "REB-T1", "ISA-T1", "ISA-T2", "ISA-T3", "ISA-T4",
    "SVMax-F3", "SVMax-F15",
}  # fmt: skip
"""The printed tables of trainings that are tested on their own data set."""

FACES = {"SEC-T4", "SEC-T11"}
"""Those of trainings on CASIA-WebFace, which are tested on several sets: in print each set is a data set."""

EVERY = PRESETS | FACES
"""The printed tables that a preset fills."""

QUOTED = {"SVMax-T5": 8}
"""How many lines a paper quotes of methods that no part trains: layouts quote them, too."""

Place = tuple[str, tuple[str, ...], str]

IRREGULAR: dict[Place, tuple[str, str]] = {
    ("SVMax-T1", ("cub200", "angular", "spread_out", "1", "0.01"), "nmi"): (".471", "0.471"),
    ("SVMax-T4", ("cars196", "npair", "none", "", "0.001"), "nmi"): ("0.5983", "0.598"),
    ("SVMax-F15", ("cub200", "contrastive", "none", "18"), "s_mu"): ("1.9", "1.90"),
    ("SVMax-F15", ("cub200", "contrastive", "none", "36"), "s_mu"): ("1.9", "1.90"),
}
"""What is printed in another form than all else in its column, and what the layout makes of it."""

AGAINST_THE_RULE: dict[Place, tuple[bool, bool]] = {
    ("SEC-T10", ("cub200", "normalized_npair", "sec"), "recall@2"): (True, False),  # 77.23; 77.31 is bold too
    ("SEC-T10", ("cub200", "multi_similarity", "sec"), "recall@8"): (True, False),  # 92.49
    ("SEC-T10", ("cub200", "multi_similarity", "sec_ema"), "recall@8"): (False, True),  # 93.23
    ("SEC-T10", ("inshop", "semihard", "sec"), "recall@1"): (True, False),  # 89.68; 89.79 is bold too
}
"""What is bold in the paper, and what is by its own rule, where these differ: four marks of SEC's table 10."""


@cache
def lines(id_: str) -> list[dict[str, str]]:
    with (PUBLISHED / INDEX[id_]["file"]).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def axes(id_: str) -> list[str]:
    parts = {"loss", "regularizer", "head", "backbone", "optimizer", "epochs", "sampler"}
    parts |= set() if id_ in FACES else {"dataset"}
    return [column for column in lines(id_)[0] if column.partition(".")[0] in parts]


def same(one: str, other: str) -> bool:
    """Whether two labels mean the same."""
    try:
        return one == other or float(one) == float(other)
    except ValueError:
        return False


def trained(recipe, path: str) -> str:
    """What a recipe holds at a path."""
    value = recipe
    for step in path.split("."):
        value = value.get(step, "") if isinstance(value, dict) else ""
    return str(value.get("name") if isinstance(value, dict) else value)


@cache
def cells_of(id_: str) -> dict[int, dict[str, TableCell]]:
    """The table's cells by the sweep's cell and the metric in print."""
    found: dict[int, dict[str, TableCell]] = {}
    for panel in replica(id_).panels:
        for row in panel.rows:
            for column, cell in zip(panel.columns, row.cells, strict=True):
                metric = column.name.removesuffix("@geometric").removesuffix("_sec")  # printed as NMI, and as F1
                if cell.cell is not None:
                    assert metric not in found.setdefault(cell.cell, {})
                    found[cell.cell][metric] = cell
    return found


def meant(id_: str, line: dict[str, str]) -> int:
    """The cell of the sweep whose labels and whose recipe are those of a printed line."""
    stem, _ = printed_tables()[id_]
    found = []
    for cell, recipe in zip(results(stem).cells, recipes(stem), strict=True):
        if all(agrees(cell.labels, recipe, axis, line[axis]) for axis in axes(id_)):
            found.append(cell.index)
    assert len(found) == 1, (line, found)
    return found[0]


def agrees(labels, recipe, axis: str, wanted: str) -> bool:
    if not wanted:
        return axis not in labels
    if axis in labels and not same(labels[axis], wanted):
        return False
    return same(trained(recipe, axis), wanted.partition(" ")[0])


def elsewhere(id_: str, line: dict[str, str]) -> bool:
    """Whether a line is another paper's, of a loss that is no part."""
    quoted = [one.get("loss") for one in INDEX[id_].get("quoted", ())]
    return line.get("loss") in quoted and catalog().get("loss", line["loss"].partition(" ")[0]) is None


def shown(cell: TableCell) -> str:
    return cell.text + (f"±{cell.std}" if cell.std else "")


@cache
def printed(id_: str):
    """Each printed number: its place, its characters, whether it is bold, and the table's cell."""
    cells, found = cells_of(id_), []
    trained_here = [line for line in lines(id_) if not elsewhere(id_, line)]
    assert len(lines(id_)) - len(trained_here) == QUOTED.get(id_, 0)
    quoted = quoted_lines(id_)
    assert len(quoted) == QUOTED.get(id_, 0)
    for line in lines(id_):
        here = cells[meant(id_, line)] if line in trained_here else quoted[line["loss"]]
        for column, text in line.items():
            if column not in {*axes(id_), "dataset"} and not column.startswith("tuned:") and text:
                metric = f"{line['dataset']}:{column}" if id_ in FACES else column
                place = (id_, tuple(line[axis] for axis in axes(id_)), metric)
                found.append((place, text.strip("*"), text.startswith("*"), here[metric]))
    return found


def quoted_lines(id_: str) -> dict[str, dict[str, TableCell]]:
    """The cells of the rows that a layout quotes, by their loss and the metric in print."""
    return {
        row.labels["loss"]: {column.name: cell for column, cell in zip(panel.columns, row.cells, strict=True)}
        for panel in replica(id_).panels
        for row in panel.rows
        if row.quoted
    }


def test_these_printed_tables_have_a_preset():
    assert set(printed_tables()) == EVERY


def test_every_character_and_every_bold_mark():
    irregular, against = {}, {}
    for id_ in EVERY:
        for place, text, bold, cell in printed(id_):
            if cell.mark == "diverged":
                assert cell.span == 0 or cell.text.startswith(text)
            elif shown(cell) != text:
                irregular[place] = (text, shown(cell))
            if bold != cell.bold:
                against[place] = (bold, cell.bold)
        if not INDEX[id_].get("bold", True):
            assert not any(cell.bold for found in cells_of(id_).values() for cell in found.values())
    assert (irregular, against) == (IRREGULAR, AGAINST_THE_RULE)
    assert sum(len(printed(id_)) for id_ in PRESETS) == 1402 + 15 + 40 + 9
    assert sum(len(printed(id_)) for id_ in FACES) == 70 + 91


def test_nothing_else_is_shown():
    for id_, (stem, name) in printed_tables().items():
        numbers = [cell for _, text, _, cell in printed(id_) if text[0] in "-+.0123456789"]
        everything = [
            cell for found in (*cells_of(id_).values(), *quoted_lines(id_).values()) for cell in found.values()
        ]
        assert len(numbers) == sum(cell.statistic is not None for cell in everything)
        others = {cell.text for cell in everything if cell.statistic is None and cell.mark is None}
        assert others <= {results(stem).spec["tables"][name]["missing"]}
