"""A table as a page shows it while it fills in: coloured by its numbers or by the states of its trials."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.publish.tables.table_data import Column, Panel, Table, TableCell
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.sweeps import Counts, Heat

LEVELS: Final = 7
"""Shades from the worst to the best number of a column."""


def shaded(table: Table, heat: Heat, counts: Mapping[int, Counts]) -> Table:
    """The table with the class of each cell's shade; a number that is to come says how many of its trials are done."""
    return replace(table, panels=tuple(_panel(panel, heat, counts) for panel in table.panels))


def counts_by_cell(outcomes: SweepOutcomes) -> dict[int, Counts]:
    """The trials of each cell by state."""
    found: dict[int, Counts] = {cell.index: Counts() for cell in outcomes.cells}
    for trial in outcomes.trials:
        counts = found[trial.cell]
        setattr(counts, trial.state, getattr(counts, trial.state) + 1)
    return found


def _panel(panel: Panel, heat: Heat, counts: Mapping[int, Counts]) -> Panel:
    levels = [_levels(panel, at, column) for at, column in enumerate(panel.columns)] if heat == "metric" else []
    rows = []
    for r, row in enumerate(panel.rows):
        cells = []
        for c, cell in enumerate(row.cells):
            known = counts.get(cell.cell) if cell.cell is not None else None
            shade = f"heat-{levels[c][r]}" if levels and levels[c].get(r) is not None else ""
            if heat == "state" and known is not None:
                shade = f"state-{_state(known)}"
            cells.append(_filled(replace(cell, shade=shade), known))
        rows.append(replace(row, cells=tuple(cells)))
    return replace(panel, rows=tuple(rows))


def _levels(panel: Panel, at: int, column: Column) -> dict[int, int]:
    """By row, where the number of a column lies between its worst and its best."""
    if column.better == "none":
        return {}
    cells = [(r, row.cells[at].statistic) for r, row in enumerate(panel.rows)]
    values = {r: found.mean if column.better == "higher" else -found.mean for r, found in cells if found is not None}
    if len(values) < 2 or (low := min(values.values())) == (high := max(values.values())):
        return {}
    return {r: round((value - low) / (high - low) * (LEVELS - 1)) for r, value in values.items()}


def _filled(cell: TableCell, counts: Counts | None) -> TableCell:
    if counts is None:
        return cell
    said = f"{counts.done} of {counts.total} trials done"
    said += "".join(f", {n} {word}" for word in ("running", "failed", "cancelled") if (n := getattr(counts, word)))
    note = "; ".join(filter(None, (cell.note, said)))
    text = f"{counts.done}/{counts.total}" if cell.mark == "pending" and counts.ended < counts.total else cell.text
    return replace(cell, text=text, note=note)


def _state(counts: Counts) -> str:
    """What of a cell's trials a person wants to see first."""
    for state in ("failed", "running", "cancelled"):
        if getattr(counts, state):
            return state
    return "finished" if counts.done == counts.total else "waiting" if not counts.done else "begun"
