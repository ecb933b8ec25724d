"""A table at one time: the numbers that it shows, each with its runs and what is known of them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from orchestrator.publish.aggregate import Place, Repeat, run_values, runs_of
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.layout import fixed_label
from orchestrator.publish.tables.table_data import Column, TableCell
from orchestrator.views.drift import RunFacts
from orchestrator.views.outcomes import SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Labels
from workers.catalog import Catalog

NumberKey = tuple[frozenset[tuple[str, str]], str, str, str]
"""The labels of a cell, the metric as the spec names it, the split that it is of, and by what it is selected."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where a table comes from."""

    title: str  # `sweep 7 (sec-t3) at 2026-11-20 12:00 UTC`
    outcomes: SweepOutcomes
    catalog: Catalog
    facts: Callable[[Collection[int]], Mapping[int, RunFacts]]  # of some trials


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number of a table and the runs that it is the mean of."""

    labels: Labels
    column: Column
    cell: TableCell
    candidate: Labels
    runs: Mapping[Repeat, float]
    trials: Mapping[Repeat, int]
    results: Mapping[Repeat, Mapping[str, float]]  # all that a run has, which tells trainings apart


def numbers(source: TableSource, name: str, axes: Collection[str]) -> dict[NumberKey, ShownNumber]:
    """Every number of a table by what names it; `axes` are those of both tables, held ones too. NotFoundError."""
    outcomes = source.outcomes
    built = published_comparison.build(outcomes, name, source.catalog)
    cells = {cell.index: cell for cell in outcomes.cells}
    shown = [*built.summaries.values(), *built.tested.values()]
    runs = runs_of(outcomes, {(one.cell, one.candidate) for one in shown if one.candidate is not None})
    by_key: dict[NumberKey, ShownNumber] = {}
    for panel in built.panels:
        for row in panel.rows:
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind != "metric" or column.delta is not None or place.cell is None:
                    continue
                summary = built.summary(column, place.cell)
                trials = _trials(runs, (place.cell, summary.candidate)) if place.statistic else []
                named = {axis: label for axis in axes if (label := _label(outcomes, cells[place.cell].labels, axis))}
                key = (frozenset(named.items()), column.name, column.split, column.selection or "")
                by_key[key] = ShownNumber(
                    dict(cells[place.cell].labels), column, place, summary.labels, run_values(trials, column.key),
                    {frozenset(one.repeat_labels.items()): one.trial for one in trials},
                    {frozenset(one.repeat_labels.items()): one.values for one in trials},
                )  # fmt: skip
    return by_key


def axes_of(*sources: TableSource) -> list[str]:
    """The axes by which cells of either are told apart."""
    return list(dict.fromkeys(axis for one in sources for cell in one.outcomes.cells for axis in cell.labels))


def _trials(runs: Mapping[Place, list[TrialOutcome]], place: tuple[int, int | None]) -> list[TrialOutcome]:
    cell, candidate = place
    return [] if candidate is None else runs[cell, candidate]


def _label(outcomes: SweepOutcomes, labels: Labels, axis: str) -> str:
    """The label of a cell on an axis; on one that its sweep does not compare what the base recipe holds."""
    compared = axis in (outcomes.spec.get("compare") or {})
    return labels.get(axis, "" if compared else fixed_label(outcomes.spec, axis))
