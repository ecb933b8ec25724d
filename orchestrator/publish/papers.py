"""The papers' printed results tables as data, found by our names, with the protocols behind them."""

import csv
import io
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

from orchestrator.spec.axes import Patch, Role, Unit, applies, apply
from orchestrator.spec.fields import finite, label_of
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Labels
from workers.catalog import Catalog, suggestion
from workers.contract import Recipe

_PERCENT: Final = -2  # 66.92 percent is the fraction 0.6692
_DECIMAL: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
_SIGN: Final = "±"


_TUNED: Final = "tuned:"


SILENT: Final = "does not say"


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a paper prints; shares are fractions, as everywhere in the project."""

    labels: Labels  # of the axes that apply to its row
    tuned: Labels  # what the authors chose in that cell, as far as they report it
    metric: str  # as a spec names it; delta:<metric> for a printed difference
    printed: str  # as in the paper, with its deviation
    value: float | None  # `None` if a word is printed
    std: float | None
    bold: bool
    unit: Unit = "percent"  # of the printed value
    std_unit: Unit = "percent"
    source: str = ""  # the paper it is quoted from; empty for own numbers

    @property
    def decimals(self) -> int:
        """The number of decimals that the paper prints."""
        return len(self.printed.partition(_SIGN)[0].partition(".")[2])

    @property
    def rounding(self) -> float:
        """The rounding error of the printed number: half a unit of its last digit, as a fraction."""
        return float(Decimal("0.5").scaleb(-self.decimals + (_PERCENT if self.unit == "percent" else 0)))


@dataclass(frozen=True)
class PublishedTable:
    """A results table of a paper with all its printed numbers."""

    id: str  # such as SEC-T3
    paper: str
    title: str
    note: str
    axes: tuple[str, ...]
    numbers: tuple[Number, ...]
    metrics: tuple[str, ...] = ()
    citation: str = ""
    conflicts: Mapping[str, str] = field(default_factory=dict)  # contradictions about it, by their number
    bold_known: bool = True
    names: str = ""  # how the paper names its labels

    @property
    def annotations(self) -> str:
        """The annotations of the printed table that are shown below its rows under our labels."""
        return " ".join(text for text in (self.note, self.names) if text)

    @property
    def cited(self) -> str:
        """The id of the printed table, with the paper if known, for a citation."""
        return f"{self.id} ({self.citation})" if self.citation else self.id

    def find(self, labels: Labels, metric: str) -> Number | None:
        """The printed number with these labels and metric, or `None` unless exactly one number matches.

        `labels` may hold more axes, and the papers' names. An axis that it lacks matches every number; "" means that
        the axis does not apply.
        """
        mine = glossary(self.paper).ours(labels)
        found = [
            number for wanted, number in self._places.get(glossary(self.paper).metric(metric), ())
            if all(mine.get(axis, label) == label for axis, label in wanted.items())
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[Labels, Number]]]:
        found: dict[str, list[tuple[Labels, Number]]] = {}
        for number in self.numbers:
            place = glossary(self.paper).ours({axis: number.labels.get(axis, "") for axis in self.axes})
            found.setdefault(number.metric, []).append((place, number))
        return found


def load(table_id: str) -> PublishedTable:
    """Loads a printed table by its id, in any case; the NotFoundError for an unknown id suggests a similar id."""
    known = {name.casefold(): name for name in names()}
    if table_id.casefold() not in known:
        raise NotFoundError(f"no published table named {table_id!r}; {suggestion(table_id, names())}")
    return _load(known[table_id.casefold()])


def names() -> list[str]:
    """The ids of the printed tables, paper by paper."""
    return list(_toml("index.toml")["tables"])


@cache
def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads(_read(name))


def _read(name: str) -> str:
    return files(__package__).joinpath("published", name).read_text(encoding="utf-8")


@cache
def _load(table_id: str) -> PublishedTable:
    index = _toml("index.toml")
    about = index["tables"][table_id]
    lines = list(csv.DictReader(io.StringIO(_read(about["file"]), newline="")))
    axes = tuple(name for name in lines[0] if name.partition(".")[0] in Recipe.model_fields)  # paths of a recipe
    metrics = tuple(name for name in lines[0] if name not in axes and not name.startswith(_TUNED))
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


def _numbers(
    line: Mapping[str, str], axes: Sequence[str], metrics: Sequence[str], about: Mapping[str, Any]
) -> Iterator[Number]:
    labels = {axis: line[axis] for axis in axes if line[axis]}
    tuned = {name.removeprefix(_TUNED): label for name, label in line.items() if name.startswith(_TUNED) and label}
    quoted = (
        quote for quote in about.get("quoted", ()) if quote.items() <= {**labels, "source": quote["source"]}.items()
    )
    source = next((quote["source"] for quote in quoted), "")
    for metric in metrics:
        if cell := line[metric]:
            unit = about.get("units", {}).get(metric, about.get("unit", "percent"))
            yield read(cell, labels, tuned, metric, unit, about.get("std_unit", unit), source)


def read(cell: str, labels: Labels, tuned: Labels, metric: str, unit: Unit, std_unit: Unit, source: str = "") -> Number:
    """Parses a number in a table file of this folder: `60.82`, `*60.82*` if bold, `66.92±0.002`, or a word."""
    bold = len(cell) > 2 and cell.startswith("*") and cell.endswith("*")
    printed = cell[1:-1] if bold else cell
    mean, _, std = printed.partition(_SIGN)
    value = deviation = None
    if _DECIMAL.fullmatch(mean):
        value, deviation = _value(mean, unit), _value(std, std_unit) if std else None
    return Number(labels, tuned, metric, printed, value, deviation, bold, unit, std_unit, source)


def _value(text: str, unit: Unit) -> float:
    return float(Decimal(text).scaleb(_PERCENT if unit == "percent" else 0))


def text(table_id: str) -> str:
    """The content of the CSV file of a printed table."""
    return _read(_toml("index.toml")["tables"][load(table_id).id]["file"])


class Glossary:
    """Translates the names of one paper to our names; case and spaces do not matter."""

    def __init__(self, paper: str) -> None:
        shared = _toml("aliases.toml")
        own = shared.get(paper, {})
        self._axes = _keyed(shared["axis"] | own.get("axis", {}))
        self._metrics = _keyed(shared["metric"] | own.get("metric", {}))
        labels, ours = shared["label"], own.get("label", {})
        self._labels = {axis: _keyed(labels.get(axis, {}) | ours.get(axis, {})) for axis in labels.keys() | ours.keys()}
        self._equal = [(self._plain(rule["labels"]), self._plain(rule["means"])) for rule in shared["equal"]]

    def axis(self, name: str) -> str:
        """Our name of an axis that the paper names."""
        return self._axes.get(_key(name), name)

    def metric(self, name: str) -> str:
        """Our name of a metric that the paper names."""
        return self._metrics.get(_key(name), name)

    def label(self, axis: str, label: str) -> str:
        """Our name of the paper's label on one of our axes; equal numbers get one spelling."""
        ours = _key(self._labels.get(axis, {}).get(_key(label), label))
        return ours if (number := finite(ours)) is None else repr(number)

    def ours(self, labels: Labels) -> dict[str, str]:
        """Translates the paper's labels to our names, equal for equal trainings; "" means that an axis has none."""
        renamed = self._plain(labels)
        for given, means in self._equal:
            if given.items() <= renamed.items():
                renamed |= means
        return renamed

    def _plain(self, labels: Labels) -> dict[str, str]:
        renamed = ((self.axis(name), label) for name, label in labels.items())
        return {axis: self.label(axis, label) for axis, label in renamed}


glossary: Final = cache(Glossary)


def _keyed(names: Mapping[str, str]) -> dict[str, str]:
    return {_key(name): ours for name, ours in names.items()}


def _key(name: str) -> str:
    return "".join(name.casefold().split())


@cache
def printed_lines() -> Mapping[str, Sequence[Labels]]:
    """The labels of the rows of each printed table, by its id."""
    lines = {name: dict.fromkeys(tuple(number.labels.items()) for number in load(name).numbers) for name in names()}
    return {name: [dict(line) for line in found] for name, found in lines.items()}


def completed_labels(spec: Mapping[str, Any], labels: Labels, table: PublishedTable, parts: Catalog) -> Labels:
    """Adds to the labels of a cell a label for every axis of the printed table that the spec fixes.

    Tuned and repeated axes stay out, since the cell holds several values of them; "" means that an axis does not apply.
    """
    names = glossary(table.paper)
    given = {names.axis(axis) for axis in labels} | set(_varied(spec))
    compared = {names.axis(axis) for axis in spec.get("compare") or {}}
    recipe = recipe_of(spec, labels)
    found = {axis: "" if axis in compared else _at(recipe, axis, parts) for axis in table.axes if axis not in given}
    return {**labels, **{axis: label for axis, label in found.items() if label is not None}}


def _varied(spec: Mapping[str, Any]) -> Iterator[str]:
    """The paths that tune and repeat axes set, by name or in their patches."""
    for role in ("tune", "repeat"):
        for axis, groups in (spec.get(role) or {}).items():
            yield axis
            for choice in (choice for group in groups for choice in group["choices"]):
                yield from choice["patch"]


def recipe_of(spec: Mapping[str, Any], labels: Labels, tuned: Labels | None = None) -> dict[str, Any]:
    """The recipe of a candidate of a stored spec: the base recipe with alternatives, rules, and tuned values."""
    rules = [rule["patch"] for rule in spec.get("rules") or () if applies(rule["when"], labels)]
    recipe = apply(apply(spec.get("recipe") or {}, _chosen(spec, "compare", labels)), rules)
    return apply(recipe, _chosen(spec, "tune", {**labels, **tuned})) if tuned else recipe


def _chosen(spec: Mapping[str, Any], role: Role, labels: Labels) -> list[Patch]:
    return [
        choice["patch"]
        for axis, groups in (spec.get(role) or {}).items()
        for group in groups
        for choice in group["choices"]
        if choice["label"] == labels.get(axis) and applies(group["when"], labels)
    ]


def _at(recipe: Mapping[str, Any], axis: str, parts: Catalog) -> str | None:
    """The label of a recipe's value at a path, by default that of its part; `None` if it is unknown."""
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


@dataclass(frozen=True)
class PaperProtocol:
    """The protocol by which a paper says that a printed table was made, such as seeds and selection."""

    recipe: Mapping[str, str]
    validation: str
    select: str
    runs: str
    metric: Mapping[str, str]


def protocol_of(table: PublishedTable) -> PaperProtocol:
    """The protocol of a printed table, or else that of its paper."""
    known = _toml("protocols.toml")
    given = {"recipe": {}, "validation": SILENT, "select": SILENT, "metric": {}}
    return PaperProtocol(**given | (known.get("table", {}).get(table.id) or known[table.paper]))
