"""Candidates to cells: which candidate of a cell is shown, and how far the cell has come."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from orchestrator.publish.aggregate import CandidateOutcome, Means, by_cell
from orchestrator.publish.labels import metric_better
from orchestrator.views.errors import ConflictError, timely
from orchestrator.views.runs import CellSummary, SweepOutcomes
from workers.catalog import Catalog
from workers.contract import Select

Better = Literal["higher", "lower"]
Status = Literal["complete", "partial", "failed", "diverged", "missing"]


def selection(spec: Mapping[str, Any]) -> Select:
    """The selection rule of a normalized spec, without what only the plan makes of it."""
    return Select.model_validate(spec.get("select") or {}, extra="ignore")


def direction(metric: str, parts: Catalog) -> Better:
    """Which way the selection metric is better; ConflictError when the catalog cannot say (any more)."""
    better = metric_better(metric, parts)
    if better not in {"higher", "lower"}:
        raise ConflictError(
            f"nothing can be selected by '{metric}': the catalog gives it no direction (better = higher or lower)"
        )
    return cast(Better, better)


def summaries(outcomes: SweepOutcomes, better: Better, by: str | None = None) -> list[CellSummary]:
    """Every cell's summary, in the order of the cells, in one pass over the trials; `by`: not by the spec's key."""
    return summaries_of(by_cell(outcomes), by or selection(outcomes.spec).key, better)


def summaries_of(candidates: Mapping[int, Sequence[CandidateOutcome]], key: str, better: Better) -> list[CellSummary]:
    """The summary of each cell, given with its candidates, by the mean of the metric `key`."""
    return [summary_of(cell, its, key, better) for cell, its in timely(candidates.items())]


def summary_of(cell: int, candidates: Sequence[CandidateOutcome], key: str, better: Better) -> CellSummary:
    """The best of some candidates of a cell by the mean of the metric `key`; the first of equals.

    Where `key` has no value in any of them nothing is selected, but an only candidate is shown with what it has.
    """
    eligible = [one for one in candidates if one.status == "complete" and key in one.scores]
    sign = 1 if better == "higher" else -1
    chosen = max(eligible, key=lambda one: sign * one.scores[key].mean, default=None)  # the first of equals
    finished = [one for one in candidates if one.status == "complete"]
    if chosen is None and len(finished) == len(candidates) == 1:
        chosen = finished[0]
    undefined = () if chosen is None else _undefined(chosen)
    if chosen is None and any(key in _undefined(one) for one in finished):
        undefined = (key,)
    return CellSummary(
        cell=cell,
        status=_status(candidates, found=chosen is not None),
        candidate=None if chosen is None else chosen.index,
        labels={} if chosen is None else chosen.labels,
        selection_key=key,
        score=None if chosen is None else chosen.scores.get(key),
        metrics={} if chosen is None else dict(chosen.metrics),
        candidates=len(candidates),
        coming=() if chosen is None else chosen.coming,
        undefined=undefined,
    )


def _undefined(candidate: CandidateOutcome) -> tuple[str, ...]:
    return candidate.metrics.undefined if isinstance(candidate.metrics, Means) else ()


def _status(candidates: Sequence[CandidateOutcome], *, found: bool) -> Status:
    statuses = {one.status for one in candidates}
    if not any(one.started for one in candidates):
        return "missing"
    if "pending" in statuses or any(one.growing for one in candidates):
        return "partial"
    if found:
        # A cancelled candidate never competed, so the best of the others is provisional for good.
        return "partial" if "cancelled" in statuses else "complete"
    if statuses == {"diverged"}:
        return "diverged"
    return "missing" if statuses <= {"cancelled", "diverged"} else "failed"
