"""Which cell of a sweep stands at which row and column of a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from orchestrator.publish.labels import NO_LABEL, Fill, Names, metric_better, metric_title, metric_unit
from orchestrator.publish.tables.table_data import PENDING, SETTLED, Column, Heading, Selected
from orchestrator.spec.axes import Unit, applies, held
from orchestrator.spec.layouts import MetricColumn, TableSpec
from orchestrator.views.errors import NotFoundError
from orchestrator.views.runs import Cell, CellSummary, Labels, SweepOutcomes
from workers.catalog import Catalog, unknown
from workers.contract import BEST_TEST, Select

_ARROWS: Final = {"higher": " ↑", "lower": " ↓"}


def column_titles(metrics: Sequence[MetricColumn], parts: Catalog, *, arrows: bool = False) -> list[str]:
    """The heading of each: the spec's, else the catalog's, with the metric's name where another one's is the same.

    With `arrows` each says which way its metric is better, also where the heading is the spec's.
    """
    titles = [_title(column, parts) if column.label is None else column.label for column in metrics]
    metrics_of: dict[str, set[str]] = {}
    for column, title in zip(metrics, titles, strict=True):
        metrics_of.setdefault(title, set()).add(column.metric)
    told = [
        f"{title} ({column.metric})" if column.label is None and len(metrics_of[title]) > 1 else title
        for column, title in zip(metrics, titles, strict=True)
    ]
    return [_pointed(column, title, parts) for column, title in zip(metrics, told, strict=True)] if arrows else told


def without_arrow(title: str) -> str:
    """A heading as it stands in a sentence."""
    return title.removesuffix(_ARROWS["lower"]).removesuffix(_ARROWS["higher"])


def _pointed(column: MetricColumn, title: str, parts: Catalog) -> str:
    arrow = _ARROWS.get(metric_better(column.metric, parts), "")
    if not title or column.delta is not None or any(one.strip() in title for one in _ARROWS.values()):
        return title
    return title + arrow


def _title(column: MetricColumn, parts: Catalog) -> str:
    title = metric_title(column.metric, parts) + (" ↓" if metric_better(column.metric, parts) == "lower" else "")
    for apart in (column.test_set, "separated" if column.separated else None):
        title += f" ({apart})" if apart else ""
    return title if column.delta is None else f"Δ{title}"


class Baselines:
    """The cells that hold the labels `wanted`, found by what else they share with another cell."""

    def __init__(self, cells: Iterable[Cell], wanted: Labels) -> None:
        self._wanted = wanted
        held = [cell for cell in cells if all(cell.labels.get(axis) == label for axis, label in wanted.items())]
        self._cells = {frozenset(cell.labels.items()): cell for cell in held}
        # An axis need not apply to them all: `none` has no eta. The one that shares most labels is meant.
        self._axes = sorted({tuple(cell.labels) for cell in held}, key=len, reverse=True)

    def of(self, cell: Cell) -> Cell | None:
        """The cell that `cell` is compared with, which may be itself; none where the sweep has none."""
        labels = {**cell.labels, **self._wanted}
        for axes in self._axes:
            if all(axis in labels for axis in axes):
                found = self._cells.get(frozenset((axis, labels[axis]) for axis in axes))
                if found:
                    return found
        return None


Point = tuple[str, ...]
"""The labels of some axes, one an axis; "" where an axis does not apply."""


def parse(spec: Mapping[str, Any], name: str) -> TableSpec:
    """One of the tables of a stored spec, whatever release stored it; NotFoundError names those there are."""
    tables = spec.get("tables") or {}
    if name not in tables:
        raise NotFoundError(unknown("table", name, tables))
    return TableSpec.model_validate(tables[name], extra="ignore")  # keys of another release


def metric_form(column: MetricColumn, layout: TableSpec, catalog: Catalog) -> Unit:
    """The unit in which a column prints its metric: its own, `number` of what is no share, else the layout's."""
    if column.unit is not None:
        return column.unit
    return "number" if metric_unit(column.metric, catalog) == "number" else layout.unit


@dataclass(frozen=True, slots=True)
class Placement:
    """The points of the row axes and of the column axes in order, and the cell at each pair that has one."""

    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    rows: tuple[Point, ...]
    columns: tuple[Point, ...]
    cells: Mapping[tuple[Point, Point], Cell]


def place(outcomes: SweepOutcomes, layout: TableSpec) -> Placement:
    """Puts every cell of the sweep somewhere: a compare axis that the table does not name becomes a row axis."""
    named = (*layout.rows, *layout.columns)
    varied = dict.fromkeys(axis for cell in outcomes.cells for axis in cell.labels)
    row_axes = (*(axis for axis in varied if axis not in named), *layout.rows)
    fixed = {axis: fixed_label(outcomes.spec, axis) for axis in named}

    def point(labels: Labels, axes: Sequence[str]) -> Point:
        return tuple(labels.get(axis, "" if axis in varied else fixed[axis]) for axis in axes)

    cells = {(point(cell.labels, row_axes), point(cell.labels, layout.columns)): cell for cell in outcomes.cells}
    return Placement(
        row_axes=row_axes,
        column_axes=tuple(layout.columns),
        rows=_ordered(row for row, _ in cells),
        columns=_ordered(column for _, column in cells) or (point({}, layout.columns),),
        cells=cells,
    )


def panels(placement: Placement, layout: TableSpec) -> list[tuple[Point, ...]]:
    """The column points of each panel; a point that no panel wants gets a last one of its own."""
    if not layout.panels:
        return [placement.columns]
    left = list(placement.columns)
    found = []
    for wanted in layout.panels:
        points = tuple(one for one in left if applies(wanted, dict(zip(placement.column_axes, one, strict=True))))
        left = [one for one in left if one not in points]
        found.append(points)
    return [points for points in (*found, tuple(left)) if points]


def fixed_label(spec: Mapping[str, Any], axis: str) -> str:
    """The label of what a stored spec's base recipe holds at an axis that is not varied; "" where it holds nothing."""
    return held(axis, spec.get("recipe") or {}) or ""


def _ordered(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each point once, those that share their first labels together, in the order in which these labels occur."""
    seen = list(dict.fromkeys(points))
    first: dict[Point, int] = {}
    for at, point in enumerate(seen):
        for level in range(len(point)):
            first.setdefault(point[: level + 1], at)
    return tuple(sorted(seen, key=lambda point: [first[point[: level + 1]] for level in range(len(point))]))


def grouped(under: Sequence[Point], columns: Sequence[Column], said: Callable[[Column], str]) -> tuple[Heading, ...]:
    """A level of headings over columns, each under its point of the column axes: what is `said` of neighbours alike."""
    runs = groupby(zip(under, columns, strict=True), lambda pair: (pair[0], said(pair[1])))
    return tuple(Heading(text, len(list(same))) for (_, text), same in runs)


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside one row."""

    headings: tuple[Heading | None, ...]  # one a stub column; none where a heading above spans this row
    texts: tuple[str, ...]
    rule: int | None  # the stub column from which a rule stands above, between groups


@dataclass(frozen=True, slots=True)
class Headings:
    """Writes the headings of panels."""

    placement: Placement
    names: Names
    spec: Mapping[str, Any]
    summaries: Mapping[int, CellSummary]

    def stub(self) -> tuple[str, ...]:
        """The titles of the columns of row headings."""
        return tuple(self.names.title(axis) for axis in self.placement.row_axes if self.names.heads(axis))

    def over(self, points: Sequence[Point], rows: Iterable[Point]) -> tuple[tuple[Heading, ...], ...]:
        """One level of headings a column axis, over one column each of `points`.

        Neighbours that share their labels so far share a heading.
        """
        axes = self.placement.column_axes
        levels = [level for level, axis in enumerate(axes) if self.names.heads(axis)]
        beneath = list(rows)
        fills = {point: self._fill((row, point) for row in beneath) for point in points}
        texts = {point: self.names.point(axes, point, fill) for point, fill in fills.items()}
        headings = []
        for level in levels:
            runs = groupby((point[: level + 1], texts[point][level]) for point in points)
            headings.append(tuple(Heading(text, len(list(same))) for (_, text), same in runs))
        return tuple(headings)

    def beside(self, rows: Sequence[Point], columns: Sequence[Point]) -> list[Beside]:
        """What stands beside each of the rows of a panel with these columns."""
        axes = self.placement.row_axes
        levels = [level for level, axis in enumerate(axes) if self.names.heads(axis)]
        texts = [self._texts(row, columns, levels) for row in rows]
        # What a row shares with the one above: its labels up to a level, hidden ones before it too, and their texts.
        keys = [
            [(row[: level + 1], mine[: n + 1]) for n, level in enumerate(levels)]
            for row, mine in zip(rows, texts, strict=True)
        ]
        last = len(levels) - 1
        beside = []
        for at, mine in enumerate(texts):
            changed = next((n for n in range(last + 1) if not at or keys[at][n] != keys[at - 1][n]), last)
            headings = (
                Heading(mine[n], 1 if n == last else _run(keys[at:], n)) if n >= changed else None
                for n in range(last + 1)
            )
            ruled = at > 0 and changed < last and _parts_groups(keys, at, changed)
            beside.append(Beside(tuple(headings), mine, changed if ruled else None))
        return beside

    def _texts(self, row: Point, columns: Sequence[Point], levels: Sequence[int]) -> tuple[str, ...]:
        fill = self._fill((row, column) for column in columns)
        axes = self.placement.row_axes
        return tuple(self.names.label(axes[level], row[level], fill) for level in levels)

    def _fill(self, places: Iterable[tuple[Point, Point]]) -> Fill:
        """What a template's paths stand for among these places: what all their cells share, or each cell's own."""
        cells = [cell for place in places if (cell := self.placement.cells.get(place))]

        def fill(path: str) -> str:
            values = [text for cell in cells if (text := self._value(cell, path)) is not None]
            return (values[0] if len(set(values)) == 1 else "/".join(values)) if values else NO_LABEL

        return fill

    def _value(self, cell: Cell, path: str) -> str | None:
        """The label of a cell, or of its selected candidate, at a path; none where no axis of that name applies."""
        summary = self.summaries[cell.index]
        tuned = path in (self.spec.get("tune") or {})
        label = cell.labels.get(path, summary.labels.get(path))
        if label is None and tuned:
            if summary.candidate is not None:
                return None
            return NO_LABEL if summary.status in SETTLED else PENDING
        if label is None and path not in (self.spec.get("compare") or {}):
            label = fixed_label(self.spec, path) or None
        return None if label is None else self.names.label(path, label)


def _parts_groups(keys: Sequence[Sequence[Any]], at: int, level: int) -> bool:
    """Whether a group of several rows ends above a row or begins with it: single rows need no rule between them."""
    above = at > 1 and keys[at - 2][level] == keys[at - 1][level]
    return above or _run(keys[at:], level) > 1


def _run(keys: Sequence[Sequence[Any]], level: int) -> int:
    """How many rows, from the first on, share their labels and texts up to a level."""
    return next((n for n, one in enumerate(keys) if one[level] != keys[0][level]), len(keys))


FLATTERY: Final = "Test − validation"
"""What stands over the differences between the two."""

_TITLES: Final[dict[Selected, str]] = {"validation": "Selected on validation", "test": "Selected on test"}


def level(under: Sequence[Point], columns: Sequence[Column]) -> tuple[Heading, ...]:
    """The headings over columns, each under its point of the column axes, that say by what their numbers are chosen."""
    return grouped(under, columns, lambda column: FLATTERY if column.kind == "flattery" else _selection_title(column))


def honest_key(column: Column, select: Select) -> str:
    """The result key of a metric at the honest choice, of a column that shows it at the other one."""
    return select.checkpoint + column.key.removeprefix(BEST_TEST)


def words(layout: TableSpec, metric: str) -> str:
    """What a caption says of the columns that are selected on the test split by `metric`; "" where there are none."""
    if "test" not in layout.selections:
        return ""
    if "validation" not in layout.selections:
        return f"Best checkpoint and candidate chosen by {metric} on the TEST split, so the numbers are optimistic."
    said = f"Under “{_TITLES['test']}” both are chosen by {metric} on the TEST split, so these numbers are optimistic."
    if layout.flattery:
        said += f" “{FLATTERY}” is how much that flatters; both come from the same trainings on the same classes."
    return said


def _selection_title(column: Column) -> str:
    return _TITLES[column.selection] if column.selection else ""
