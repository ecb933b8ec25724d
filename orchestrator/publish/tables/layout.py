"""Which cell of a sweep stands at which row and column of a table, and which headings stand over and next to it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from orchestrator.publish.labels import NO_LABEL
from orchestrator.publish.tables.select import Selection
from orchestrator.publish.tables.table_data import PENDING, SETTLED, Column, Heading, Selected
from orchestrator.spec.layouts import PLACE, TableSpec
from orchestrator.spec.spec import applies, recipe_label
from orchestrator.views.runs import Cell, Labels, SweepResults

Point = tuple[str, ...]
"""The label of each of some axes; "" where an axis does not apply."""

SELECTION_GAP: Final = "Test − validation"
"""The heading over the differences between the two selections."""

TESTED: Final = "Selected on test"
_SELECTED: Final[Mapping[Selected | None, str]] = {None: "", "validation": "Selected on validation", "test": TESTED}
"""The heading over the columns of each selection."""


def fixed_label(spec: Mapping[str, Any], axis: str) -> str:
    """The label of the base recipe's value at an axis that a stored spec does not vary; "" without a value."""
    return recipe_label(axis, spec.get("recipe") or {}) or ""


def label_at(spec: Mapping[str, Any], labels: Labels, axis: str) -> str:
    """The label of a cell on an axis; if the sweep does not compare the axis, the value in the base recipe."""
    return labels.get(axis, "" if axis in (spec.get("compare") or {}) else fixed_label(spec, axis))


@dataclass(frozen=True, slots=True)
class Placement:
    """The rows and columns of a table as points of their axes, and the sweep's cell at each pair."""

    row_axes: tuple[str, ...]
    column_axes: tuple[str, ...]
    rows: tuple[Point, ...]
    columns: tuple[Point, ...]
    cells: Mapping[tuple[Point, Point], Cell]

    def at(self, rows: Iterable[Point], columns: Iterable[Point]) -> list[Cell]:
        """The sweep's cells at these rows and columns of the table."""
        under = list(columns)
        return [cell for row in rows for column in under if (cell := self.cells.get((row, column)))]


def placed(results: SweepResults, layout: TableSpec) -> Placement:
    """Assigns the cells of a sweep to rows and columns; compare axes that the table does not name become row axes."""
    fixed = {axis: fixed_label(results.spec, axis) for axis in (*layout.rows, *layout.columns)}
    varied = dict.fromkeys(axis for cell in results.cells for axis in cell.labels)
    row_axes = (*(axis for axis in varied if axis not in (*layout.rows, *layout.columns)), *layout.rows)

    def point(labels: Labels, axes: Sequence[str]) -> Point:
        return tuple(labels.get(axis, "" if axis in varied else fixed[axis]) for axis in axes)

    cells = {(point(cell.labels, row_axes), point(cell.labels, layout.columns)): cell for cell in results.cells}
    return Placement(
        row_axes=row_axes,
        column_axes=tuple(layout.columns),
        rows=_ordered(row for row, _ in cells),
        columns=_ordered(column for _, column in cells) or (point({}, layout.columns),),
        cells=cells,
    )


def _ordered(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each point once, those that share their first labels together, in the order in which these labels occur."""
    seen = list(dict.fromkeys(points))
    first: dict[Point, int] = {}
    for at, point in enumerate(seen):
        for level in range(len(point)):
            first.setdefault(point[: level + 1], at)
    return tuple(sorted(seen, key=lambda point: [first[point[: level + 1]] for level in range(len(point))]))


def _panel_points(placement: Placement, layout: TableSpec) -> list[tuple[Point, ...]]:
    """The column points of each panel; the points that no panel wants get a last panel of their own."""
    if not layout.panels:
        return [placement.columns]
    left = list(placement.columns)
    found = []
    for wanted in layout.panels:
        points = tuple(one for one in left if applies(wanted, dict(zip(placement.column_axes, one, strict=True))))
        left = [one for one in left if one not in points]
        found.append(points)
    return [points for points in (*found, tuple(left)) if points]


@dataclass(frozen=True, slots=True)
class RowHeadings:
    """The headings next to one row of a table."""

    headings: tuple[Heading | None, ...]  # by stub column; None where a heading above spans this row
    texts: tuple[str, ...]
    rule: int | None  # the stub column from which a rule stands above, between groups


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows and columns of one panel with their headings."""

    rows: tuple[Point, ...]
    row_headings: tuple[RowHeadings, ...]  # by row
    points: tuple[Point, ...]  # the point of the column axes under which each column stands
    columns: tuple[Column, ...]
    levels: tuple[tuple[Heading, ...], ...]  # above the column titles


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The arrangement of a table: the rows, columns and headings of its panels, and the printed names of its axes."""

    placement: Placement
    grids: Sequence[Grid]  # of the panels
    stub: tuple[str, ...]  # the titles of the row headings
    axes: Mapping[str, str]  # the name in running text of each axis that has headings
    points: Sequence[tuple[str, ...]]  # each point of the column axes in running text


def arranged(selected: Selection) -> Arrangement:
    """Arranges the panels of a table; a panel with no columns appears only if all panels have none."""
    placement, names = placed(selected.results, selected.layout), selected.names
    under = [
        [(point, column) for point in points for column in _columns(selected, placement, point)]
        for points in _panel_points(placement, selected.layout)
    ]
    rows, columns = placement.row_axes, placement.column_axes
    texts = names.headings(rows, placement.rows, over=False) | names.headings(columns, placement.columns, over=True)
    axes = {axis: names.axis_name(axis) for axis in (*rows, *columns) if names.heads(axis)}
    points = [names.point(columns, point) for point in placement.columns]
    headings = _Headings(selected, placement, axes, texts)
    found = [_grid(headings, pairs) for pairs in [pairs for pairs in under if pairs] or under]
    return Arrangement(placement, found, tuple(names.title(axis) for axis in rows if axis in axes), axes, points)


def _grid(headings: "_Headings", pairs: Sequence[tuple[Point, Column]]) -> Grid:
    placement, layout = headings.placement, headings.selected.layout
    under, columns = tuple(point for point, _ in pairs), tuple(column for _, column in pairs)
    wanted = list(dict.fromkeys(under))
    rows = tuple(row for row in placement.rows if placement.at([row], wanted))
    levels = headings.over(under, rows)
    if layout.groups == "several" and len(wanted) == len(placement.columns):  # the only panel
        levels = [level for level in levels if len(level) > 1]
    titles = []
    if layout.selections:
        titles.append([SELECTION_GAP if one.kind == "selection_gap" else _SELECTED[one.selection] for one in columns])
    if any(one.over for one in columns):
        titles.append([one.over for one in columns])
    levels += [_together(zip(under, texts, strict=True)) for texts in titles]
    return Grid(rows, tuple(headings.row_headings(rows, wanted)), under, columns, tuple(levels))


def _columns(selected: Selection, placement: Placement, point: Point) -> list[Column]:
    """The columns under one point of the column axes: what was tuned, then the metrics, by each selection in turn."""
    labels = dict(zip(placement.column_axes, point, strict=True))
    tuned = _tuned_axes(selected, placement, point) if selected.layout.show_tuned else []
    described = [one for one in selected.columns if applies(one.wanted.when, labels)]
    metrics: defaultdict[str, set[str]] = defaultdict(set)  # by title
    for one in described:
        metrics[one.column.title].add(one.wanted.metric)
    columns: list[Column] = []
    for chosen in selected.layout.selections or (None,):
        columns += [Column("tuned", axis, selected.names.title(axis), labels, selection=chosen) for axis in tuned]
        for one in described:
            if one.column.selection == chosen:
                title = one.column.title
                if one.wanted.label is None and len(metrics[title]) > 1:
                    title = f"{title} ({one.wanted.metric})"
                columns.append(replace(one.column, title=title + one.arrow, labels=labels))
    if selected.layout.selection_gap:
        tested = [one for one in columns if one.plain and one.selection == "test"]
        columns += [replace(one, kind="selection_gap", better="none", signed=True, selection=None) for one in tested]
    return columns


def _tuned_axes(selected: Selection, placement: Placement, point: Point) -> list[str]:
    here = {cell.index for cell in placement.at(placement.rows, [point])}
    if selected.printed:
        return list(dict.fromkeys(axis for cell in here for axis in selected.summaries[cell].labels))
    candidates = (one for one in selected.results.candidates if one.cell in here)
    return list(dict.fromkeys(axis for one in candidates for axis in one.labels))


@dataclass(frozen=True, slots=True)
class _Headings:
    """The headings of one table, whose texts are known but for the templates among them."""

    selected: Selection
    placement: Placement
    axes: Mapping[str, str]  # those that have headings
    texts: Mapping[tuple[str, str], str]  # by axis and label; a template is not among them

    def over(self, points: Sequence[Point], rows: Sequence[Point]) -> list[tuple[Heading, ...]]:
        """One level of headings for each column axis, over one column for each of `points`.

        Neighbours that share their labels so far share a heading.
        """
        levels = []
        for level, axis in enumerate(self.placement.column_axes):
            if axis in self.axes:
                texts = [self._text(axis, point[level], rows, [point]) for point in points]
                levels.append(_together(zip((point[: level + 1] for point in points), texts, strict=True)))
        return levels

    def row_headings(self, rows: Sequence[Point], columns: Sequence[Point]) -> list[RowHeadings]:
        """What stands next to each of the rows of a panel with these columns."""
        levels = [(level, axis) for level, axis in enumerate(self.placement.row_axes) if axis in self.axes]
        texts = [tuple(self._text(axis, row[level], [row], columns) for level, axis in levels) for row in rows]
        # What a row shares with the row above: its labels up to a level, hidden ones too, and their texts.
        keys = [
            [(row[: level + 1], mine[: n + 1]) for n, (level, _) in enumerate(levels)]
            for row, mine in zip(rows, texts, strict=True)
        ]
        last = len(levels) - 1
        found = []
        for at, mine in enumerate(texts):
            changed = next((n for n in range(last + 1) if not at or keys[at][n] != keys[at - 1][n]), last)
            headings = (
                Heading(mine[n], 1 if n == last else _run(keys[at:], n)) if n >= changed else None
                for n in range(last + 1)
            )
            ruled = at > 0 and changed < last and _parts_groups(keys, at, changed)
            found.append(RowHeadings(tuple(headings), mine, changed if ruled else None))
        return found

    def _text(self, axis: str, label: str, rows: Sequence[Point], columns: Sequence[Point]) -> str:
        """A label as a heading of some cells, whose labels on other axes fill the places of a template."""
        if (axis, label) in self.texts:
            return self.texts[axis, label]
        cells = self.placement.at(rows, columns)
        return PLACE.sub(lambda found: self._filled(cells, found[1]), self.selected.layout.labels[axis][label])

    def _filled(self, cells: Sequence[Cell], path: str) -> str:
        """What stands for a path: what all cells share, or each cell's own."""
        values = [text for cell in cells if (text := self._value(cell, path)) is not None]
        return (values[0] if len(set(values)) == 1 else "/".join(values)) if values else NO_LABEL

    def _value(self, cell: Cell, path: str) -> str | None:
        """The label of a cell, or of its selected candidate, at a path; None where no axis of that name applies."""
        summary, spec = self.selected.summaries[cell.index], self.selected.results.spec
        label = cell.labels.get(path, summary.labels.get(path))
        if label is None and path in (spec.get("tune") or {}):
            if summary.candidate is not None:
                return None
            return NO_LABEL if summary.status in SETTLED else PENDING
        if label is None and path not in (spec.get("compare") or {}):
            label = fixed_label(spec, path) or None
        return None if label is None else self.selected.names.label(path, label)


def _parts_groups(keys: Sequence[Sequence[Any]], at: int, level: int) -> bool:
    """Whether a group of several rows ends above a row or begins with it: single rows need no rule between them."""
    above = at > 1 and keys[at - 2][level] == keys[at - 1][level]
    return above or _run(keys[at:], level) > 1


def _run(keys: Sequence[Sequence[Any]], level: int) -> int:
    """How many rows, from the first on, share their labels and texts up to a level."""
    return next((n for n, one in enumerate(keys) if one[level] != keys[0][level]), len(keys))


def _together(columns: Iterable[tuple[Point, str]]) -> tuple[Heading, ...]:
    """A level of headings over columns, given by point and text: equal neighbours share a heading."""
    return tuple(Heading(text, len(list(same))) for (_, text), same in groupby(columns))
