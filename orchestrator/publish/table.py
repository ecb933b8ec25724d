"""Cells to a table: headings, printed numbers, bold and marks, for any format to write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from orchestrator.publish.bold import Contender, best
from orchestrator.publish.caption import Facts, caption, legend, notes
from orchestrator.publish.entries import metric_cell, tuned_cell
from orchestrator.publish.labels import Parts, axis_title, metric_better, metric_title, metric_unit
from orchestrator.publish.layout import MetricColumn, Placement, Point, TableLayout, panels, parse, place, printed_point
from orchestrator.publish.select import direction, selection, summaries
from orchestrator.publish.sheet import SETTLED, Column, Heading, Panel, Row, Table, TableCell
from orchestrator.trial import CellSummary, Labels, SweepOutcomes
from workers.contract import Select


@dataclass(frozen=True, slots=True)
class _Build:
    """What every step of building one table reads."""

    outcomes: SweepOutcomes
    layout: TableLayout
    parts: Parts
    select: Select
    placement: Placement
    summaries: Mapping[int, CellSummary]
    bold: frozenset[str] | None  # the axes that span a block; none: nothing is bold


def build(outcomes: SweepOutcomes, name: str, catalog: Parts, *, show_tuned: bool | None = None) -> Table:
    """The table `name` of the sweep's spec; `show_tuned` overrides the spec's. NotFoundError when there is none."""
    layout = parse(outcomes.spec, name)
    if show_tuned is not None:
        layout = layout.model_copy(update={"show_tuned": show_tuned})
    select = selection(outcomes.spec)
    placement = place(outcomes, layout)
    found = {one.cell: one for one in summaries(outcomes, direction(select.metric, catalog))}
    block = _block(layout, placement)
    it = _Build(outcomes, layout, catalog, select, placement, found, block)
    built = _embolden([_panel(it, points) for points in panels(placement, layout)], it)
    facts = Facts(outcomes, layout, catalog, select, found, built, block)
    return Table(
        name=name,
        sweep=outcomes.sweep,
        sweep_name=outcomes.name,
        state=outcomes.state,
        stub=tuple(axis_title(axis) for axis in placement.row_axes),
        panels=built,
        caption=caption(facts, placement),
        notes=notes(facts),
        legend=legend(facts),
        summaries=found,
        std=layout.std,
    )


def _block(layout: TableLayout, placement: Placement) -> frozenset[str] | None:
    if layout.bold == "none":
        return None
    return frozenset((*placement.row_axes[:-1], *placement.column_axes) if layout.bold is None else layout.bold)


def _panel(it: _Build, points: Sequence[Point]) -> Panel:
    columns = [(point, column) for point in points for column in _columns(it, point)]
    return Panel(
        groups=_groups(it, [point for point, _ in columns]),
        columns=tuple(column for _, column in columns),
        rows=tuple(_rows(it, columns)),
    )


def _columns(it: _Build, point: Point) -> list[Column]:
    """The columns under one point of the column axes: what was tuned, then the metrics."""
    labels = dict(zip(it.placement.column_axes, point, strict=True))
    tuned = _tuned_axes(it, point) if it.layout.show_tuned else []
    return [
        *(Column("tuned", axis, axis_title(axis), labels) for axis in tuned),
        *(_metric_column(it, wanted, labels) for wanted in it.layout.metrics),
    ]


def _metric_column(it: _Build, wanted: MetricColumn, labels: Labels) -> Column:
    better = metric_better(wanted.metric, it.parts)
    arrow = " ↓" if better == "lower" else ""
    return Column(
        kind="metric",
        name=wanted.metric,
        title=wanted.label or metric_title(wanted.metric, it.parts) + arrow,
        labels=labels,
        key=f"{it.select.checkpoint}/test/{wanted.metric}",
        unit=wanted.unit or ("number" if metric_unit(wanted.metric, it.parts) == "number" else it.layout.unit),
        decimals=it.layout.decimals if wanted.decimals is None else wanted.decimals,
        better=better,
    )


def _tuned_axes(it: _Build, point: Point) -> list[str]:
    here = {cell.index for (_, column), cell in it.placement.cells.items() if column == point}
    axes = (axis for one in it.outcomes.candidates if one.cell in here for axis in one.labels)
    return list(dict.fromkeys(axes))


def _groups(it: _Build, points: Sequence[Point]) -> tuple[tuple[Heading, ...], ...]:
    """One level of headings a column axis; neighbours that share their labels so far share a heading."""
    printed = [printed_point(it.placement.column_axes, point, it.parts, named=True) for point in points]
    found = []
    for level in range(len(it.placement.column_axes)):
        runs = groupby(one[: level + 1] for one in printed)
        found.append(tuple(Heading(run[level], len(list(same))) for run, same in runs))
    return tuple(found)


def _rows(it: _Build, columns: Sequence[tuple[Point, Column]]) -> list[Row]:
    axes = it.placement.row_axes
    wanted = {point for point, _ in columns}
    points = [row for row in it.placement.rows if any((row, column) in it.placement.cells for column in wanted)]
    found: list[Row] = []
    for position, point in enumerate(points):
        above = points[position - 1] if position else ()
        changed = next((level for level in range(len(axes)) if point[: level + 1] != above[: level + 1]), len(axes))
        texts = printed_point(axes, point, it.parts)
        found.append(
            Row(
                headings=tuple(
                    Heading(texts[level], _span(points[position:], level)) if level >= changed else None
                    for level in range(len(axes))
                ),
                texts=texts,
                labels=dict(zip(axes, point, strict=True)),
                rule=changed if position and changed < len(axes) - 1 else None,
                cells=tuple(_cell(it, point, under, column) for under, column in columns),
            )
        )
    return found


def _span(points: Sequence[Point], level: int) -> int:
    """How many of `points`, from the first on, share its labels up to `level`."""
    return next((n for n, one in enumerate(points) if one[: level + 1] != points[0][: level + 1]), len(points))


def _cell(it: _Build, row: Point, under: Point, column: Column) -> TableCell:
    cell = it.placement.cells.get((row, under))
    if cell is None:
        return TableCell("–", note="not in this sweep")
    summary = it.summaries[cell.index]
    if column.kind == "tuned":
        return tuned_cell(summary, column.name)
    return metric_cell(summary, column, std=it.layout.std, state=it.outcomes.state)


def _embolden(built: Sequence[Panel], it: _Build) -> tuple[Panel, ...]:
    if it.bold is None:
        return tuple(built)
    axes = it.bold
    contenders = []
    for p, panel in enumerate(built):
        for r, row in enumerate(panel.rows):
            for c, (column, cell) in enumerate(zip(panel.columns, row.cells, strict=True)):
                if column.kind == "metric" and cell.cell is not None:
                    labels = {**row.labels, **column.labels}
                    block = (column.key, *sorted((axis, labels[axis]) for axis in axes if axis in labels))
                    text = cell.text if cell.statistic else None
                    settled = it.summaries[cell.cell].status in SETTLED
                    contenders.append(Contender((p, r, c), block, column.better, text, settled))
    winners = best(contenders)
    return tuple(
        replace(
            panel,
            rows=tuple(
                replace(row, cells=tuple(replace(x, bold=(p, r, c) in winners) for c, x in enumerate(row.cells)))
                for r, row in enumerate(panel.rows)
            ),
        )
        for p, panel in enumerate(built)
    )
