"""Which cell of a sweep stands at which row and column of a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.publish.labels import metric_unit
from orchestrator.spec.recipe import held
from orchestrator.spec.table import MetricColumn, TableSpec
from orchestrator.spec.unit import Unit
from orchestrator.spec.when import applies
from orchestrator.views.errors import NotFoundError
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Cell, Labels
from workers.catalog import Catalog, unknown

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
