"""A table with its best numbers bold, and those of them marked whose lead may be noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from orchestrator.publish.aggregate import Place, Repeat, run_values
from orchestrator.publish.tables.bold import Contender, best
from orchestrator.publish.tables.doubt import doubts
from orchestrator.publish.tables.table_data import SETTLED, Column, Panel
from orchestrator.views.outcomes import CellSummary, TrialOutcome

Chosen = Callable[[Column, int], CellSummary]
"""A cell with the candidate that a column shows."""
Runs = Mapping[Place, Sequence[TrialOutcome]]


def embolden(panels: Sequence[Panel], block: frozenset[str], chosen: Chosen, runs: Runs | None) -> tuple[Panel, ...]:
    """The panels with the best of each block bold; with `runs` those are marked whose lead may be noise."""
    contenders = list(_contenders(panels, block, chosen))
    winners = best(contenders)
    said = {} if runs is None else doubts(contenders, winners, lambda at: _values(panels, chosen, runs, at))
    return tuple(
        replace(
            panel,
            rows=tuple(
                replace(
                    row,
                    cells=tuple(
                        replace(cell, bold=(p, r, c) in winners, doubt=said.get((p, r, c), ""))
                        for c, cell in enumerate(row.cells)
                    ),
                )
                for r, row in enumerate(panel.rows)
            ),
        )
        for p, panel in enumerate(panels)
    )


def doubted(panels: Sequence[Panel]) -> bool:
    """Whether a number is marked."""
    return any(cell.doubt for panel in panels for row in panel.rows for cell in row.cells)


def _contenders(panels: Sequence[Panel], block: frozenset[str], chosen: Chosen) -> Iterator[Contender]:
    for p, panel in enumerate(panels):
        for r, row in enumerate(panel.rows):
            for c, (column, cell) in enumerate(zip(panel.columns, row.cells, strict=True)):
                if column.kind == "metric" and cell.cell is not None:
                    labels = {**row.labels, **column.labels}
                    where = sorted((axis, labels[axis]) for axis in block if axis in labels)
                    within = (column.key, column.unit, column.decimals, *where)
                    text = cell.text if cell.statistic else None
                    settled = chosen(column, cell.cell).status in SETTLED
                    yield Contender((p, r, c), within, column.better, text, settled)


def _values(panels: Sequence[Panel], chosen: Chosen, runs: Runs, at: tuple[int, ...]) -> Mapping[Repeat, float]:
    """The values of the runs behind a number, by repeat."""
    p, r, c = at
    column, cell = panels[p].columns[c], panels[p].rows[r].cells[c].cell
    summary = None if cell is None else chosen(column, cell)
    if summary is None or summary.candidate is None:
        return {}
    return run_values(runs.get((summary.cell, summary.candidate), ()), column.key)
