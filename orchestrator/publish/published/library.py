"""Reads the printed tables that lie in this folder."""

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

from orchestrator.publish.published.glossary import glossary
from orchestrator.publish.published.number import Number, PrintedPlace, Units, read
from orchestrator.views.errors import NotFoundError
from orchestrator.views.planned import Labels
from workers.catalog import meant as suggested
from workers.contract import Recipe

_TUNED: Final = "tuned:"


@dataclass(frozen=True)
class PublishedTable:
    """A printed table with all its numbers."""

    id: str  # such as SEC-T3
    paper: str
    title: str
    note: str
    axes: tuple[str, ...]
    numbers: tuple[Number, ...]
    metrics: tuple[str, ...] = ()
    citation: str = ""
    conflicts: Mapping[str, str] = field(default_factory=dict)  # contradictions that touch it, by their number
    bold_known: bool = True
    names: str = ""  # what its labels are called in print

    @property
    def remarks(self) -> str:
        """What to say of it where its rows stand under our labels."""
        return " ".join(one for one in (self.note, self.names) if one)

    def find(self, labels: Labels, metric: str) -> Number | None:
        """The number at a cell; `labels` may hold more axes and the papers' names.

        An axis that `labels` does not hold does not decide, one with "" does not apply; none where not exactly one
        number is left.
        """
        mine = glossary(self.paper).ours(labels)
        found = [
            number for wanted, number in self._places.get(glossary(self.paper).metric(metric), ())
            if all(mine.get(axis, label) == label for axis, label in wanted.items())
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[Labels, Number]]]:
        """The numbers by metric, each with a label for every axis."""
        found: dict[str, list[tuple[Labels, Number]]] = {}
        for number in self.numbers:
            place = glossary(self.paper).ours({axis: number.labels.get(axis, "") for axis in self.axes})
            found.setdefault(number.metric, []).append((place, number))
        return found


def names() -> list[str]:
    """The printed tables there are, paper by paper."""
    return list(_index()["tables"])


class PrintedLines(Mapping[str, Sequence[Labels]]):
    """By the id of each printed table the labels of its lines; a table is read when it is asked for."""

    def __getitem__(self, table_id: str) -> Sequence[Labels]:
        return [dict(one) for one in dict.fromkeys(tuple(number.labels.items()) for number in load(table_id).numbers)]

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())

    def __contains__(self, table_id: object) -> bool:
        return table_id in names()


def load(table_id: str) -> PublishedTable:
    """A printed table by its id, in any case; NotFoundError names a near miss."""
    known = {name.casefold(): name for name in names()}
    if table_id.casefold() not in known:
        raise NotFoundError(f"no published table named {table_id!r}; {suggested(table_id, names())}")
    return _load(known[table_id.casefold()])


def text(table_id: str) -> str:
    """The file of a printed table as it lies in this folder: CSV."""
    return _read(_index()["tables"][load(table_id).id]["file"])


def meant(table: PublishedTable, axis: str, label: str) -> str:
    """What a row is called here that other collections of these numbers call `label`."""
    rules = _index()["tables"][table.id].get("read_as", ())
    return next((one["ours"] for one in rules if (one["axis"], one["label"]) == (axis, label)), label)


def renamed(table: PublishedTable, dataset: str, metric: str) -> str:
    """Under which metric a printed column stands here, where the paper's heading cannot be right."""
    rules = _index()["tables"][table.id].get("printed_as", ())
    return next((one["metric"] for one in rules if (one["dataset"], one["name"]) == (dataset, metric)), metric)


@cache
def _load(table_id: str) -> PublishedTable:
    index = _index()
    about = index["tables"][table_id]
    lines = list(csv.DictReader(io.StringIO(_read(about["file"]), newline="")))
    columns = list(lines[0])
    axes = _axes(columns)
    metrics = tuple(one for one in columns if one not in axes and not one.startswith(_TUNED))
    return PublishedTable(
        id=table_id,
        paper=about["paper"],
        title=about["title"],
        note=about["note"],
        axes=axes,
        numbers=tuple(number for line in lines for number in _numbers(line, axes, metrics, about)),
        metrics=metrics,
        citation=index["papers"][about["paper"]],
        conflicts={name: index["conflicts"][name] for name in about.get("conflicts", ())},
        bold_known=about.get("bold", True),
        names=about.get("names", ""),
    )


def _axes(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that are paths of a recipe: no metric is named like one."""
    return tuple(one for one in columns if one.partition(".")[0] in Recipe.model_fields)


def _numbers(
    line: Mapping[str, str], axes: Sequence[str], metrics: Sequence[str], about: Mapping[str, Any]
) -> Iterator[Number]:
    labels = {axis: line[axis] for axis in axes if line[axis]}
    tuned = {name.removeprefix(_TUNED): label for name, label in line.items() if name.startswith(_TUNED) and label}
    source = next((one["source"] for one in about.get("quoted", ()) if _holds(one, labels)), "")
    for metric in metrics:
        if cell := line[metric]:
            unit = about.get("units", {}).get(metric, about.get("unit", "percent"))
            yield read(cell, PrintedPlace(labels, tuned, metric), Units(unit, about.get("std_unit", unit)), source)


def _holds(quoted: Mapping[str, str], labels: Labels) -> bool:
    return all(labels.get(axis) == label for axis, label in quoted.items() if axis != "source")


@cache
def _index() -> dict[str, Any]:
    return tomllib.loads(_read("index.toml"))


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
