"""The papers' printed results tables as data, found by our names, with the protocols behind them.

The built-in tables lie in the folder `published` next to this file; own ones lie in `published` of the folder of own
parts, whose texts a catalog holds.
"""

import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field, ValidationError

from orchestrator.spec.fields import finite, label_of
from orchestrator.spec.layouts import Unit
from orchestrator.spec.spec import Patch, Role, applies, apply
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import PublishedNumber
from orchestrator.views.runs import Labels
from workers.catalog import Catalog, PartSourceError, counted, near, sentence, shown, suggestion
from workers.contract import Frozen, Recipe

_PERCENT: Final = -2  # 66.92 percent is the fraction 0.6692
_DECIMAL: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)")
_SIGN: Final = "±"
_TUNED: Final = "tuned:"
SILENT: Final = "does not say"
_WRITTEN: Final = re.compile(rf"\*?({_DECIMAL.pattern})({_SIGN}{_DECIMAL.pattern})?\*?|\D*")
"""What a cell of a table file may hold: a number as printed, or a word."""


@dataclass(frozen=True)
class PublishedTable:
    """A results table of a paper with all its printed numbers."""

    id: str  # such as SEC-T3
    paper: str
    title: str
    note: str
    axes: tuple[str, ...]
    numbers: tuple[PublishedNumber, ...]
    csv: str  # the content of its file
    glossary: "Glossary"
    protocol: "PaperProtocol"
    metrics: tuple[str, ...] = ()
    citation: str = ""
    conflicts: Mapping[str, str] = field(default_factory=dict)  # contradictions about it, by their number
    names: str = ""  # how the paper names its labels

    @property
    def annotations(self) -> str:
        """The annotations of the printed table that are shown below its rows under our labels."""
        return " ".join(text for text in (self.note, self.names) if text)

    @property
    def cited(self) -> str:
        """The id of the printed table, with the paper if known, for a citation."""
        return f"{self.id} ({self.citation})" if self.citation else self.id

    def find(self, labels: Labels, metric: str) -> PublishedNumber | None:
        """The printed number with these labels and metric, or `None` unless exactly one number matches.

        `labels` may hold more axes, and the papers' names. An axis that it lacks matches every number; "" means that
        the axis does not apply.
        """
        mine = self.glossary.ours(labels)
        found = [
            number for wanted, number in self._places.get(self.glossary.metric(metric), ())
            if all(mine.get(axis, label) == label for axis, label in wanted.items())
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    @cached_property
    def _places(self) -> Mapping[str, Sequence[tuple[Labels, PublishedNumber]]]:
        found: dict[str, list[tuple[Labels, PublishedNumber]]] = {}
        for number in self.numbers:
            place = self.glossary.ours({axis: number.labels.get(axis, "") for axis in self.axes})
            found.setdefault(number.metric, []).append((place, number))
        return found


class PaperProtocol(Frozen):
    """The protocol by which a paper says that a printed table was made, such as seeds and selection."""

    recipe: dict[str, str] = Field(default_factory=dict)
    validation: str = SILENT
    select: str = SILENT
    runs: str = SILENT
    metric: dict[str, str] = Field(default_factory=dict)


class _About(Frozen):
    """What an index says of a table; the head of `published/index.toml` explains the fields."""

    paper: str
    file: str
    title: str
    note: str = ""
    names: str = ""
    bold: bool = True
    unit: Unit = "percent"
    units: dict[str, Unit] = Field(default_factory=dict)
    std_unit: Unit | None = None
    quoted: list[dict[str, str]] = Field(default_factory=list)
    conflicts: list[str] = Field(default_factory=list)


class _Index(Frozen):
    papers: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, _About] = Field(default_factory=dict)
    conflicts: dict[str, str] = Field(default_factory=dict)
    protocols: dict[str, PaperProtocol] = Field(default_factory=dict)  # by the id of a table, or else by its paper


Own = Mapping[str, str]
"""The files of own printed tables by name, as a catalog holds them in `published`."""
NOTHING: Final[Own] = MappingProxyType({})


def load(table_id: str, own: Own = NOTHING) -> PublishedTable:
    """Loads a printed table by its id, in any case; the NotFoundError for an unknown id suggests a similar id.

    Raises PartSourceError with every problem of `own`.
    """
    known = {name.casefold(): name for name in names(own)}
    if table_id.casefold() not in known:
        raise NotFoundError(f"no published table named {table_id!r}; {suggestion(table_id, names(own))}")
    return _tables(tuple(own.items()))[known[table_id.casefold()]]


def names(own: Own = NOTHING) -> list[str]:
    """The ids of the printed tables, paper by paper; raises PartSourceError with every problem of `own`."""
    return list(_tables(tuple(own.items())))


def check(catalog: Catalog) -> None:
    """Checks a catalog's own printed tables; raises PartSourceError with every problem."""
    names(catalog.published)


@lru_cache(maxsize=8)
def _tables(own: tuple[tuple[str, str], ...]) -> Mapping[str, PublishedTable]:
    names = ("index.toml", "aliases.toml", "protocols.toml")
    built_in, aliases, protocols = (tomllib.loads(_read(name)) for name in names)
    if not own:
        built_in["protocols"] = protocols.pop("table") | protocols
        return dict(_made(_Index.model_validate(built_in), aliases, _read))
    texts, known = dict(own), _tables(())
    index, problems = _own_index(texts.get("index.toml"))
    taken = {name.casefold(): name for name in (*known, *built_in["papers"])}
    for name in (*index.tables, *index.papers):
        if name.casefold() in taken:
            problems.append(f"index.toml: {shown(taken[name.casefold()])} is the name of a built-in paper or table")
    for id_, about in index.tables.items():
        if about.paper not in index.papers:
            problems.append(f"index.toml: {id_}: no paper {shown(about.paper)} under [papers]")
        problems += [
            f"index.toml: {id_}: no conflict {shown(it)}" for it in about.conflicts if it not in index.conflicts
        ]
        if about.file in texts:
            problems += _wrong(about, texts[about.file], Glossary("", aliases))
        else:
            problems.append(f"index.toml: {id_}: there is no file {shown(about.file)}")
    if problems:
        found = "\n".join(f"  {problem}" for problem in problems)
        raise PartSourceError(f"the folder `published` has {counted(len(problems), 'problem')}.\n{found}")
    return {**known, **dict(_made(index, aliases, texts.__getitem__))}


def _read(name: str) -> str:
    return files(__package__).joinpath("published", name).read_text(encoding="utf-8")


def _own_index(text: str | None) -> tuple[_Index, list[str]]:
    """The index of own tables, empty if it has problems, and these."""
    if text is None:
        return _Index(), ["index.toml is missing; it names each table's paper, file and title"]
    try:
        return _Index.model_validate(tomllib.loads(text)), []
    except tomllib.TOMLDecodeError as error:
        return _Index(), [f"index.toml: {error}"]
    except ValidationError as error:
        places = ((".".join(map(str, it["loc"])), sentence(it)) for it in error.errors())
        return _Index(), [f"index.toml: {place}: {message}" for place, message in places]


def _made(
    index: _Index, aliases: Mapping[str, Any], text: Callable[[str], str]
) -> Iterator[tuple[str, PublishedTable]]:
    for id_, about in index.tables.items():
        glossary = Glossary(about.paper, aliases)
        head, *lines = csv.reader(io.StringIO(text(about.file), newline=""))
        columns = [glossary.column(name) for name in head]
        axes = tuple(name for name in columns if _is_axis(name))
        metrics = tuple(name for name in columns if name not in axes and not name.startswith(_TUNED))
        rows = [dict(zip(columns, (cell.strip() for cell in line), strict=True)) for line in lines if line]
        yield (
            id_,
            PublishedTable(
                id=id_,
                paper=about.paper,
                title=about.title,
                note=about.note,
                axes=axes,
                numbers=tuple(number for row in rows for number in _numbers(row, axes, metrics, about)),
                metrics=metrics,
                citation=index.papers[about.paper],
                conflicts={name: index.conflicts[name] for name in about.conflicts},
                names=about.names,
                csv=text(about.file),
                glossary=glossary,
                protocol=index.protocols.get(id_) or index.protocols.get(about.paper) or PaperProtocol(),
            ),
        )


def _is_axis(column: str) -> bool:
    return column.partition(".")[0] in Recipe.model_fields  # a path of a recipe


def _wrong(about: _About, text: str, glossary: "Glossary") -> Iterator[str]:
    """The problems of an own table's file, with their lines."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        lines = [(reader.line_num, [cell.strip() for cell in line]) for line in reader if line]
    except csv.Error as error:
        yield f"{about.file}: {error}"
        return
    columns = [glossary.column(name) for name in lines[0][1]] if lines else []
    axes = [at for at, name in enumerate(columns) if _is_axis(name)]
    metrics = {at for at, name in enumerate(columns) if at not in axes and not name.startswith(_TUNED)}
    if not axes or not metrics or len(lines) < 2:
        yield (
            f"{about.file}: expected a first line with axes such as loss and then metrics such as recall@1, separated "
            f"by commas, and a line for each printed row; found {counted(len(columns), 'column')}, {len(axes)} of them "
            f"axes, and {counted(max(0, len(lines) - 1), 'row')}"
        )
        return
    for at, name in enumerate(columns):
        right = near(name, Recipe.model_fields) if at in metrics else None
        if not name or columns.index(name) != at or right:
            advice = f"did you mean {right!r}?" if right else "each column needs a name of its own"
            yield f"{about.file}:1: column {at + 1} {shown(name)}: {advice}"
    yield from (f"index.toml: {about.file} has no column {shown(it)} of `units`" for it in {*about.units} - {*columns})
    first: dict[tuple[str, ...], int] = {}
    for number, cells in lines[1:]:
        if len(cells) != len(columns):
            yield f"{about.file}:{number}: expected {counted(len(columns), 'cell')}, found {len(cells)}"
            continue
        for at in sorted(metrics):
            if not _WRITTEN.fullmatch(cells[at]):
                yield (
                    f"{about.file}:{number}: {columns[at]}: expected a number such as 60.82, 60.82{_SIGN}0.4 or "
                    f"*60.82* (bold), a word or nothing; found {shown(cells[at])}"
                )
        labels = tuple(cells[at] for at in axes)
        if first.setdefault(labels, number) != number:
            yield f"{about.file}:{number}: the labels {', '.join(labels)} are those of line {first[labels]}"


def _numbers(
    line: Mapping[str, str], axes: Sequence[str], metrics: Sequence[str], about: _About
) -> Iterator[PublishedNumber]:
    """The numbers of a line: `60.82`, `*60.82*` if bold, `66.92±0.002`, or a word."""
    labels = {axis: line[axis] for axis in axes if line[axis]}
    tuned = {name.removeprefix(_TUNED): label for name, label in line.items() if name.startswith(_TUNED) and label}
    quoted = (quote for quote in about.quoted if quote.items() <= {**labels, "source": quote["source"]}.items())
    source = next((quote["source"] for quote in quoted), None)
    for metric in metrics:
        if cell := line[metric]:
            unit = about.units.get(metric, about.unit)
            std_unit = about.std_unit or unit
            bold = len(cell) > 2 and cell.startswith("*") and cell.endswith("*")
            printed = cell[1:-1] if bold else cell
            mean, _, std = printed.partition(_SIGN)
            value = deviation = None
            if _DECIMAL.fullmatch(mean):
                value, deviation = _value(mean, unit), _value(std, std_unit) if std else None
            shown = bold if about.bold else None
            yield PublishedNumber(labels, tuned, metric, printed, value, deviation, shown, unit, std_unit, source)


def _value(text: str, unit: Unit) -> float:
    return float(Decimal(text).scaleb(_PERCENT if unit == "percent" else 0))


class Glossary:
    """Translates the names of one paper to our names; case and spaces do not matter."""

    def __init__(self, paper: str, shared: Mapping[str, Any]) -> None:
        own = shared.get(paper, {})
        self._axes = _keyed(shared.get("axis", {}) | own.get("axis", {}))
        self._metrics = _keyed(shared.get("metric", {}) | own.get("metric", {}))
        labels, ours = shared.get("label", {}), own.get("label", {})
        self._labels = {axis: _keyed(labels.get(axis, {}) | ours.get(axis, {})) for axis in labels.keys() | ours.keys()}
        self._equal = [(self._plain(rule["labels"]), self._plain(rule["means"])) for rule in shared.get("equal", ())]

    def axis(self, name: str) -> str:
        """Our name of an axis that the paper names."""
        return self._axes.get(_key(name), name)

    def metric(self, name: str) -> str:
        """Our name of a metric that the paper names."""
        return self._metrics.get(_key(name), name)

    def column(self, head: str) -> str:
        """Our name of a column of a table file: an axis, `tuned:` and an axis, or a metric."""
        tuned, name = head.strip().startswith(_TUNED), head.strip().removeprefix(_TUNED)
        axis = self.axis(name)
        return f"{_TUNED}{axis}" if tuned else axis if _is_axis(axis) else self.metric(name)

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


def _keyed(names: Mapping[str, str]) -> dict[str, str]:
    return {_key(name): ours for name, ours in names.items()}


def _key(name: str) -> str:
    return "".join(name.casefold().split())


def printed_lines(own: Own = NOTHING) -> Mapping[str, Sequence[Labels]]:
    """The labels of the rows of each printed table, by its id; raises PartSourceError with every problem of `own`."""
    return {
        table.id: [dict(row) for row in dict.fromkeys(tuple(number.labels.items()) for number in table.numbers)]
        for table in _tables(tuple(own.items())).values()
    }


def completed_labels(spec: Mapping[str, Any], labels: Labels, table: PublishedTable, parts: Catalog) -> Labels:
    """Adds to the labels of a cell a label for every axis of the printed table that the spec fixes.

    Tuned and repeated axes stay out, since the cell holds several values of them; "" means that an axis does not apply.
    """
    names = table.glossary
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
