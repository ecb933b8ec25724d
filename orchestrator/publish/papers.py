"""What the papers printed: their results tables as data, found by our names, and how they were made."""

import csv
import io
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

from orchestrator.spec.axes import Patch, Role, Unit, applies, apply, label_of
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Labels
from workers.catalog import Catalog
from workers.catalog import meant as suggested
from workers.contract import Recipe


class Glossary:
    """How one paper calls things; names compare without regard to case and blanks."""

    def __init__(self, paper: str) -> None:
        shared = _aliases()
        own = shared.get(paper, {})
        self._axes = _keyed(shared["axis"] | own.get("axis", {}))
        self._metrics = _keyed(shared["metric"] | own.get("metric", {}))
        labels, ours = shared["label"], own.get("label", {})
        self._labels = {axis: _keyed(labels.get(axis, {}) | ours.get(axis, {})) for axis in labels.keys() | ours.keys()}
        self._equal = [(self._plain(one["labels"]), self._plain(one["means"])) for one in shared["equal"]]

    def axis(self, name: str) -> str:
        """Our name of an axis."""
        return self._axes.get(_key(name), name)

    def metric(self, name: str) -> str:
        """Our name of a metric."""
        return self._metrics.get(_key(name), name)

    def label(self, axis: str, label: str) -> str:
        """Our name of a label on one of our axes, in one spelling; equal numbers get one too."""
        return _number(_key(self._labels.get(axis, {}).get(_key(label), label)))

    def ours(self, labels: Labels) -> dict[str, str]:
        """Labels under our names, those of equal trainings alike; "" where an axis does not apply."""
        found = self._plain(labels)
        for given, means in self._equal:
            if all(found.get(axis) == label for axis, label in given.items()):
                found |= means
        return found

    def _plain(self, labels: Labels) -> dict[str, str]:
        renamed = ((self.axis(name), label) for name, label in labels.items())
        return {axis: self.label(axis, label) for axis, label in renamed}


@cache
def glossary(paper: str) -> Glossary:
    """How a paper calls things."""
    return Glossary(paper)


@cache
def _aliases() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published", "aliases.toml").read_text(encoding="utf-8"))


def _keyed(names: Mapping[str, str]) -> dict[str, str]:
    return {_key(name): ours for name, ours in names.items()}


def _key(name: str) -> str:
    return "".join(name.casefold().split())


def _number(label: str) -> str:
    """`label`, or one spelling of the number that it is."""
    try:
        value = float(label)
    except ValueError:
        return label
    return repr(value) if math.isfinite(value) else label


_PERCENT: Final = -2  # 66.92 percent is the fraction 0.6692
_DECIMAL: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
_SIGN: Final = "±"


@dataclass(frozen=True, slots=True)
class Number:
    """A printed number; shares are fractions, as everywhere in the project."""

    labels: Labels  # of the axes that apply to its row
    tuned: Labels  # what the authors chose in that cell, as far as they say
    metric: str  # as a spec names it; delta:<metric> for a printed difference
    printed: str  # as it stands in the paper, with its deviation
    value: float | None  # none for words
    std: float | None
    bold: bool
    unit: Unit = "percent"  # in which the value is printed
    std_unit: Unit = "percent"  # and its deviation
    source: str = ""  # where the paper took it from; empty for its own

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.printed.partition(_SIGN)[0].partition(".")[2])

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit: how far the value may lie from what was rounded."""
        return float(Decimal("0.5").scaleb(-self.decimals + (_PERCENT if self.unit == "percent" else 0)))


@dataclass(frozen=True, slots=True)
class PrintedPlace:
    """Where a number stands in its table."""

    labels: Labels
    tuned: Labels
    metric: str


@dataclass(frozen=True, slots=True)
class Units:
    """In which units a table prints a metric and its deviation."""

    value: Unit
    std: Unit


def read(cell: str, place: PrintedPlace, units: Units, source: str = "") -> Number:
    """The number that a cell holds: `60.82`, `*60.82*` where bold, `66.92±0.002`, or a word."""
    bold = len(cell) > 2 and cell.startswith("*") and cell.endswith("*")
    printed = cell[1:-1] if bold else cell
    mean, _, std = printed.partition(_SIGN)
    is_number = _DECIMAL.fullmatch(mean) is not None
    return Number(
        labels=place.labels,
        tuned=place.tuned,
        metric=place.metric,
        printed=printed,
        value=_value(mean, units.value) if is_number else None,
        std=_value(std, units.std) if is_number and std else None,
        bold=bold,
        unit=units.value,
        std_unit=units.std,
        source=source,
    )


def _value(text: str, unit: Unit) -> float:
    return float(Decimal(text).scaleb(_PERCENT if unit == "percent" else 0))


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
    return files(__package__).joinpath("published", name).read_text(encoding="utf-8")


def held_labels(spec: Mapping[str, Any], labels: Labels, table: PublishedTable, parts: Catalog) -> Labels:
    """`labels` of a cell of the sweep with a label for every axis of the printed table that the spec decides.

    An axis that is tuned or repeated stays out, since the cell holds several values there; "" is where none applies.
    """
    names = glossary(table.paper)
    given = {names.axis(axis) for axis in labels}
    varied = {names.axis(axis) for axis in spec.get("compare") or {}}
    open_ = set(_varied(spec))
    missing = [axis for axis in table.axes if axis not in given and axis not in open_]
    recipe = held_recipe(spec, labels)
    found = {axis: "" if axis in varied else _at(recipe, axis, parts) for axis in missing}
    return {**labels, **{axis: label for axis, label in found.items() if label is not None}}


def _varied(spec: Mapping[str, Any]) -> Iterator[str]:
    """The paths that tune and repeat axes set, by name or in their patches."""
    for role in ("tune", "repeat"):
        for axis, groups in (spec.get(role) or {}).items():
            yield axis
            for choice in (choice for group in groups for choice in group["choices"]):
                yield from choice["patch"]


def held_recipe(spec: Mapping[str, Any], labels: Labels, tuned: Labels | None = None) -> dict[str, Any]:
    """The base recipe with the cell's alternatives, then the rules that apply to it, then what a candidate tunes."""
    rules = [rule["patch"] for rule in spec.get("rules") or () if applies(rule["when"], labels)]
    recipe = apply(apply(spec.get("recipe") or {}, _chosen(spec, "compare", labels)), rules)
    return apply(recipe, _chosen(spec, "tune", {**labels, **tuned})) if tuned else recipe


def _chosen(spec: Mapping[str, Any], role: Role, labels: Labels) -> list[Patch]:
    """The patches of the alternatives of a role's axes that have these labels."""
    return [
        choice["patch"]
        for axis, groups in (spec.get(role) or {}).items()
        for group in groups
        for choice in group["choices"]
        if choice["label"] == labels.get(axis) and applies(group["when"], labels)
    ]


def _at(recipe: Mapping[str, Any], axis: str, parts: Catalog) -> str | None:
    """The label of what a recipe holds at a path, its part's default included; none where nobody can say."""
    kind, _, option = axis.partition(".")
    value = recipe.get(kind)
    if option:
        part = {"name": value} if isinstance(value, str) else value
        if not isinstance(part, Mapping) or not (entry := parts.get(kind, str(part.get("name")))):
            return None
        default = entry.parameter(option)
        value = part.get(option, default.default if default else "")
    elif isinstance(value, Mapping):
        value = value.get("name")
    return None if value is None else label_of(value)


SILENT: Final = "does not say"


@dataclass(frozen=True)
class PaperProtocol:
    """What a paper says of how a table was made."""

    recipe: Mapping[str, str]
    validation: str
    select: str
    runs: str
    metric: Mapping[str, str]


def protocol_of(table: PublishedTable) -> PaperProtocol:
    """The protocol of a printed table, or of its paper."""
    known = _protocols()
    said = known.get("table", {}).get(table.id) or known[table.paper]
    return PaperProtocol(
        said.get("recipe", {}), said.get("validation", SILENT), said.get("select", SILENT), said["runs"],
        said.get("metric", {}),
    )  # fmt: skip


@cache
def _protocols() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published", "protocols.toml").read_text(encoding="utf-8"))
