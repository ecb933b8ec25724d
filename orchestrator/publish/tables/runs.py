"""What a table says of the runs behind its numbers: how many they are, and how they compare with a baseline's."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from orchestrator.publish.aggregate import Place, run_values
from orchestrator.publish.tables.significance import Comparison, Test, compare, holm
from orchestrator.publish.tables.table_data import Column, Panel, TableCell
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import CellSummary, TrialOutcome
from orchestrator.views.provenance import mixture

Beside = tuple[CellSummary, CellSummary]
"""A cell and its baseline."""

_Asked = tuple[int, str | None, str]  # the cell, by what it is selected, the result key


def counted(panels: Sequence[Panel], when: Literal["differ", "always", "never"]) -> tuple[Panel, ...]:
    """The panels with the number of runs in those cells where it is not the usual one; in all, or in none."""
    usual = usual_count(panels)
    if when == "never" or usual is None:
        return tuple(panels)

    def change(column: Column, cell: TableCell) -> TableCell:
        n = _count(column, cell)
        return replace(cell, count=n) if n and (when == "always" or n != usual) else cell

    return tuple(_changed(panel, change) for panel in panels)


def usual_count(panels: Sequence[Panel]) -> int | None:
    """The number of runs that most cells have, the larger of equals; none where there are none."""
    found = {cell.cell: n for column, cell in _places(panels) if (n := _count(column, cell))}
    return max(((times, n) for n, times in Counter(found.values()).items()), default=(0, None))[1]


def mixed(
    panels: Sequence[Panel],
    chosen: Callable[[Column, int], CellSummary],
    runs: Mapping[Place, Sequence[TrialOutcome]],
) -> tuple[Panel, ...]:
    """The panels with a mark on each number whose runs differ in data, code or versions of parts."""
    known: dict[Place, str] = {}

    def change(column: Column, cell: TableCell) -> TableCell:
        summary = None if cell.cell is None or cell.statistic is None else chosen(column, cell.cell)
        if summary is None or summary.candidate is None:
            return cell
        place = summary.cell, summary.candidate
        if place not in known:
            finished = (one for one in runs.get(place, ()) if one.state is TrialState.FINISHED)
            known[place] = "; ".join(mixture(finished))
        return replace(cell, mixed=known[place]) if known[place] else cell

    return tuple(_changed(panel, change) for panel in panels)


def compared(
    panels: Sequence[Panel],
    beside: Callable[[Column, int], Beside | None],
    runs: Mapping[Place, Sequence[TrialOutcome]],
    test: Test,
) -> tuple[Panel, ...]:
    """The panels whose metric cells know how they compare with their baselines, corrected over all of them."""
    comparisons: dict[_Asked, Comparison] = {}
    for column, cell in _places(panels):
        if cell.cell is None or cell.statistic is None or (pair := beside(column, cell.cell)) is None:
            continue
        own, other = (run_values(runs.get((one.cell, one.candidate or 0), ()), column.key) for one in pair)
        comparisons[_asked(column, cell.cell)] = compare(own, other, pair[1].cell, test)
    corrected = holm(comparisons)

    def change(column: Column, cell: TableCell) -> TableCell:
        known = corrected.get(_asked(column, cell.cell)) if cell.cell is not None and _own(column) else None
        return replace(cell, comparison=known) if known else cell

    return tuple(_changed(panel, change) for panel in panels)


def _own(column: Column) -> bool:
    """Whether a column shows a metric itself."""
    return column.kind == "metric" and column.delta is None


def _asked(column: Column, cell: int) -> _Asked:
    # A metric that stands twice, in other units, is one comparison.
    return cell, column.selection, column.key


def _count(column: Column, cell: TableCell) -> int:
    return cell.statistic.n if _own(column) and cell.statistic is not None else 0


def _places(panels: Sequence[Panel]) -> Iterator[tuple[Column, TableCell]]:
    for panel in panels:
        for row in panel.rows:
            yield from ((one, cell) for one, cell in zip(panel.columns, row.cells, strict=True) if _own(one))


def _changed(panel: Panel, change: Callable[[Column, TableCell], TableCell]) -> Panel:
    rows = (
        replace(row, cells=tuple(change(*pair) for pair in zip(panel.columns, row.cells, strict=True)))
        for row in panel.rows
    )
    return replace(panel, rows=tuple(rows))
