"""Compares the published numbers with a folder of the same tables in another form: long CSVs, one line a number."""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator.publish.papers import Number, PublishedTable, glossary, load, names

_COLUMNS: Final = frozenset({"table", "dataset", "loss", "regularizer", "hyperparameters", "metric", "printed"})
_SETTINGS: Final = "hyperparameters"
_OURS: Final = {("ISA-T2", "multi_similarity"): "multi_similarity mined=false"}
"""What a row is called here that the folder calls otherwise."""
_METRICS: Final = {
    ("REB-T4", "inshop", "recall@2"): "recall@10",
    ("REB-T4", "inshop", "recall@3"): "recall@20",
}
"""Columns that stand here under another metric than the paper prints above them."""


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """What a comparison found."""

    tables: int
    compared: int
    differences: tuple[str, ...]


def compare(folder: Path) -> ComparisonReport:
    """Every number of the folder must be here, alike in value, deviation, boldness and print, and the other way round.

    The folder holds one CSV a table with the columns table, dataset, loss, regularizer, hyperparameters
    (`eta=1;rho=.01`), metric, value, std (both in the printed unit), bold (1, 0, or nothing where it is not known) and
    printed.
    """
    lines = list(_lines(folder))
    differences: list[str] = []
    seen: dict[str, set[int]] = {name: set() for name in names()}
    for line in lines:
        if line["table"] not in seen:
            differences.append(f"{line['table']}: there is no such table here")
            continue
        table = load(line["table"])
        place = f"{table.id} {line['dataset']} {line['loss']} {line['regularizer']} {line['hyperparameters']} "
        at = _position(table, line)
        if at is None:
            differences.append(f"{place}{line['metric']}: not here")
        elif at in seen[table.id]:
            differences.append(f"{place}{line['metric']}: stands twice in the folder")
        else:
            seen[table.id].add(at)
            wrong = _difference(table, table.numbers[at], line)
            differences += [f"{place}{line['metric']}: {wrong}"] if wrong else []
    for name, known in seen.items():
        table = load(name)
        strange = [number for at, number in enumerate(table.numbers) if at not in known]
        differences += [
            f"{name} {dict(one.labels)} {one.metric}: {one.printed} is not in the folder" for one in strange
        ]
    return ComparisonReport(len({line["table"] for line in lines}), len(lines), tuple(differences))


def _lines(folder: Path) -> Iterator[dict[str, str]]:
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            read = csv.DictReader(file)
            if set(read.fieldnames or ()) >= _COLUMNS:
                yield from read


def _position(table: PublishedTable, line: Mapping[str, str]) -> int | None:
    """Where the number of a line stands among the table's."""
    names_of = glossary(table.paper)
    given = dict(one.partition("=")[::2] for one in line[_SETTINGS].split(";") if one)
    labels = {
        axis: _OURS.get((table.id, line[axis]), line[axis]) for axis in ("dataset", "loss", "regularizer")
    } | given
    mine = names_of.ours(labels)
    metric = names_of.metric(line["metric"])
    metric = _METRICS.get((table.id, mine.get("dataset", ""), metric), metric)
    found = table.find({axis: mine.get(axis, "") for axis in table.axes}, metric)
    # By identity: that is quicker than comparing all their labels.
    return next((at for at, number in enumerate(table.numbers) if number is found), None)


def _difference(table: PublishedTable, number: Number, line: Mapping[str, str]) -> str | None:
    """What differs between a number and its line; none where nothing does."""
    bold = line["bold"] == "1"
    told = [label for label in number.tuned.values() if re.search(rf"={re.escape(label)}(?=[;/]|$)", line[_SETTINGS])]
    pairs: Sequence[tuple[str, Any, Any]] = (
        ("printed", number.printed, line["printed"]),
        ("value", _scaled(number.value, number.unit), _float(line["value"])),
        ("std", _scaled(number.std, number.std_unit), _float(line["std"])),
        ("bold", number.bold, bold),
        ("what was tuned", [*number.tuned.values()], told),
        ("whether bold is known", table.bold_known, line["bold"] != ""),
    )
    return next((f"{what} is {ours!r} here, {theirs!r} there" for what, ours, theirs in pairs if ours != theirs), None)


def _scaled(value: float | None, unit: str) -> float | None:
    """A value in the unit in which it is printed."""
    return value if value is None or unit != "percent" else round(value * 100, 10)


def _float(text: str) -> float | None:
    value = float(text or "nan")
    return None if math.isnan(value) else value
