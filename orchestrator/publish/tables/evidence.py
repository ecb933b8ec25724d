"""Which cells of a table are compared with which, by which runs, and what a look before them has spent."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.publish.aggregate import runs_of
from orchestrator.publish.tables.differences import Baselines
from orchestrator.publish.tables.query_evidence import Queries, QueryEvidence
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.publish.verdicts.boundary import ANY, LEAST, Spending, planned
from orchestrator.publish.verdicts.judgement import Evidence
from orchestrator.spec.table import TableSpec, VerdictSpec
from orchestrator.views.extension import SweepLook
from orchestrator.views.lifecycle import TRIAL_ENDED, TrialState
from orchestrator.views.outcomes import CellSummary, SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Labels

Judgeable = tuple[int, str | None, str]
"""A cell, by what it is selected, and the result key of a metric."""
DEFAULT: Final[Labels] = {"regularizer": "none"}

_OBSTACLES: Final[Mapping[str, str]] = {"diverged": "diverged", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class CellPair:
    """A cell beside its baseline by one metric."""

    column: Column
    cell: int
    baseline: int | None  # none: the sweep has no such cell
    evidence: Evidence
    stages: int = 0  # looks at these pairs that the record knows of, the present one too
    hours: float | None = None  # that one more seed of both takes


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """What is judged, and by whose queries; none: by seeds alone."""

    spec: VerdictSpec
    queries: Queries | None


def baseline_labels(layout: TableSpec, outcomes: SweepOutcomes) -> Labels | None:
    """What the cells of a table are judged against; none where nothing is asked for and there is no default."""
    asked = (layout.verdicts and layout.verdicts.against) or layout.against
    if asked:
        return asked
    is_there = any(cell.labels.get("regularizer") == "none" for cell in outcomes.cells)
    return DEFAULT if is_there else None


def cell_pairs(
    table: Table, outcomes: SweepOutcomes, layout: TableSpec, looks: Sequence[SweepLook]
) -> dict[Judgeable, CellPair]:
    """Every comparison that the table declares, each once, whether or not there are runs of it.

    What they cover is the layout's `covers`.
    """
    wanted = baseline_labels(layout, outcomes)
    if wanted is None:
        return {}
    asked = layout.verdicts or VerdictSpec()
    baselines = Baselines(outcomes.cells, wanted)
    cells = {cell.index: cell for cell in outcomes.cells}
    places: dict[Judgeable, tuple[Column, int, int | None]] = {}
    for column, cell in _judged(table, asked):
        if cell.cell is None:
            continue
        labels = cells[cell.cell].labels
        if any(labels.get(axis) != label for axis, label in (asked.of or {}).items()):
            continue
        baseline = baselines.of(cells[cell.cell])
        if (baseline is None or baseline.index != cell.cell) and not wanted.items() <= labels.items():
            places[cell.cell, column.selection, column.key] = (
                column,
                cell.cell,
                None if baseline is None else baseline.index,
            )
    alone = {cell: only for cell, (only, *others) in _candidates(outcomes).items() if not others}
    summaries = (*table.summaries.values(), *table.tested.values())
    runs = runs_of(outcomes, {(one.cell, at) for one in summaries if (at := _chosen(one, alone)) is not None})
    said = ", ".join(f"{axis} {label}" for axis, label in wanted.items())
    queries = None if layout.covers == "seeds" else Queries(layout.covers, QueryEvidence(outcomes.queries))
    pairs = {}
    for place, (column, index, other) in places.items():
        if other is None:
            evidence = Evidence(obstacle=f"the sweep has no cell with {said} beside it")
            pairs[place] = CellPair(column, index, None, evidence)
        else:
            sides = [table.summary(column, one) for one in (index, other)]
            its_runs = [runs.get((one.cell, _chosen(one, alone) or 0), []) for one in sides]
            pairs[place] = _pair(column, sides, its_runs, JudgedBy(asked, queries), looks)
    return pairs


def _candidates(outcomes: SweepOutcomes) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in outcomes.candidates:
        found.setdefault(one.cell, []).append(one.index)
    return found


def _chosen(summary: CellSummary, alone: Mapping[int, int]) -> int | None:
    """The candidate whose runs count: the selected one, or the only one that there is, before it is complete too."""
    return alone.get(summary.cell) if summary.candidate is None else summary.candidate


def _judged(table: Table, asked: VerdictSpec) -> Iterator[tuple[Column, TableCell]]:
    for panel in table.panels:
        for row in panel.rows:
            for column, cell in zip(panel.columns, row.cells, strict=True):
                plain = column.kind == "metric" and column.delta is None and column.better != "none"
                if plain and (not asked.metrics or column.name.rpartition(":")[2] in asked.metrics):
                    yield column, cell


def _pair(
    column: Column,
    sides: Sequence[CellSummary],
    runs: Sequence[Sequence[TrialOutcome]],
    wanted: JudgedBy,
    looks: Sequence[SweepLook],
) -> CellPair:
    own, base = sides
    asked = wanted.spec
    theirs = {frozenset(one.repeat_labels.items()): one for one in runs[1]}
    pairs = [(one, theirs[at]) for one in runs[0] if (at := frozenset(one.repeat_labels.items())) in theirs]
    valued = [
        pair
        for pair in pairs
        if all(math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged for one in pair)
    ]
    edges = [one.position or 0 for one in looks if one.finished]
    staged = [bisect_right(edges, max(one.position for one in pair)) for pair in valued]
    least = LEAST if wanted.queries is None else wanted.queries.least
    spending, obstacle = _spending(pairs, staged, least, asked, looks, edges)
    growing = {own.status, base.status} & {"partial", "missing"}
    if growing and not obstacle and (not pairs or (asked.looks == "planned" and len(set(staged)) < 2)):
        obstacle = "not finished: its candidates are still to be chosen"
    evidence = Evidence(
        differences=[one.values[column.key] - other.values[column.key] for one, other in valued],
        spending=spending,
        sign=1 if column.better == "higher" else -1,
        margin=None if asked.margin is None else asked.margin / column.scale,
        obstacle=_status(own.status, "it") or _status(base.status, "the baseline") or obstacle,
    )
    if wanted.queries is not None:
        evidence = wanted.queries.beside(evidence, column, valued)
    return CellPair(column, own.cell, base.cell, evidence, len(set(staged)), _hours(runs))


def _status(status: str, who: str) -> str:
    return f"{who} {_OBSTACLES[status]}" if status in _OBSTACLES else ""


def _spending(
    pairs: Sequence[tuple[TrialOutcome, TrialOutcome]],
    staged: Sequence[int],
    least: int,
    asked: VerdictSpec,
    looks: Sequence[SweepLook],
    edges: Sequence[int],
) -> tuple[Spending, str]:
    """What may be spent, and why nothing can be said yet where a plan has not ended."""
    unknown = any(one.position is None for one in looks)  # an older release did not note what was there before
    first = min((bisect_right(edges, max(one.position, other.position)) for one, other in pairs), default=0)
    plan = [pair for pair in pairs if bisect_right(edges, max(one.position for one in pair)) == first]
    # Trained before the sweep was submitted. What is reused later changes nothing: the first look has spent its share.
    known = any(one.reused and other.reused for one, other in plan)
    if asked.looks == "any" or unknown or known:
        return ANY, ""
    states = {one.state for pair in plan for one in pair}
    if not states <= TRIAL_ENDED:
        done = sum(all(one.state in TRIAL_ENDED for one in pair) for pair in plan)
        return ANY, f"not finished: {done} of {len(plan)} planned seeds"
    if TrialState.CANCELLED in states:
        return ANY, f"its plan of {len(plan)} seeds was cut short: {len(staged)} were trained"
    return planned(sum(one == first for one in staged), least), ""


def _hours(runs: Sequence[Sequence[TrialOutcome]]) -> float | None:
    """That one more seed takes, by what the runs of both took."""
    means = []
    for side in runs:
        seconds = [one.seconds for one in side if one.seconds]
        if not seconds:
            return None
        means.append(sum(seconds) / len(seconds))
    return sum(means) / 3600
