"""From trials to candidates to cells: means over repeats, selection, and the statistics of both."""

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from orchestrator.publish.labels import metric_facts
from orchestrator.spec.layouts import Spread
from orchestrator.views.errors import ConflictError, timely
from orchestrator.views.evidence import CellOptimism, OptimismView
from orchestrator.views.runs import (
    ORIGINS,
    Candidate,
    Cell,
    CellSummary,
    Labels,
    Statistic,
    SweepResults,
    TrialResult,
)
from orchestrator.views.states import TRIAL_ENDED, TrialState
from orchestrator.views.sweeps import GridCell
from orchestrator.views.trials import leaves
from workers.catalog import Catalog, changes
from workers.contract import Select

CandidateStatus = Literal["complete", "pending", "diverged", "failed", "cancelled", "pruned"]
"""`complete`: every repeat finished ok; `pending`: a repeat is still to come; otherwise why it cannot be selected."""

Place = tuple[int, int]
"""A cell, and a candidate of it."""
Repeat = frozenset[tuple[str, str]]
"""The labels of the repeat axes, which tell the runs of a candidate apart."""

_STARTED = frozenset({TrialState.RUNNING, TrialState.FINISHED, TrialState.FAILED, TrialState.PRUNED})


Better = Literal["higher", "lower"]
Status = Literal["complete", "partial", "failed", "diverged", "missing"]


_SUMMARY: Final = (
    "Of the score that candidates are selected by ({key}): each repeat is left out in turn, the others select, and the "
    "one left out judges (nested resampling over repeats). The expected best of n is that of n candidates drawn with "
    "replacement from those of the cell (Dodge et al., EMNLP 2019)."
)
_MOST_DRAWN: Final = 1_000
"""The most draws for which the expected best is computed."""
_FEW: Final = 3
"""Values of what differs between runs that a note names."""
_Runs = Mapping[Repeat, float]


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """The result of one candidate over its repeats: state, mean score and mean metrics."""

    index: int  # within the cell
    labels: Labels
    status: CandidateStatus  # of the repeats that every candidate of the cell has
    started: bool  # whether any of its repeats has run
    metrics: Mapping[str, Statistic]
    """Keyed checkpoint/split/metric; empty unless complete, and without the keys that not every repeat has."""
    scores: Mapping[str, Statistic]
    """The same over those repeats that every candidate of the cell has: what it is selected by. A reproduced
    winner of a search has more, which must not unseat it; one of them that fails is left out of the means."""
    growing: bool = False  # whether some of those further repeats are still to come
    coming: tuple[str, ...] = ()  # metrics that are still being evaluated of some repeat


def aggregate(candidate: Candidate, trials: Sequence[TrialResult], shared: int | None = None) -> CandidateResult:
    """Combines the repeats of a candidate to its result; only the first `shared` repeats decide on its selection."""
    first, further = trials[:shared], trials[len(trials) if shared is None else shared :]
    status = _status(first)
    scores = Means(first) if status == "complete" else {}
    reproduced = [trial for trial in further if trial.state is TrialState.FINISHED and not trial.diverged]
    return CandidateResult(
        index=candidate.index,
        labels=candidate.labels,
        status=status,
        started=any(trial.state in _STARTED for trial in trials),
        metrics=Means([*first, *reproduced]) if status == "complete" and reproduced else scores,
        scores=scores,
        growing=any(trial.state not in TRIAL_ENDED for trial in further),
        coming=tuple(dict.fromkeys(name for trial in trials for name in trial.coming)),
    )


def _status(trials: Sequence[TrialResult]) -> CandidateStatus:
    states = {trial.state for trial in trials}
    if not trials or not states <= TRIAL_ENDED:
        return "pending"
    # Before `failed`: no retry can make a candidate eligible once one of its repeats has diverged.
    if any(trial.diverged for trial in trials):
        return "diverged"
    if TrialState.FAILED in states:
        return "failed"
    if TrialState.CANCELLED in states:
        return "cancelled"
    return "pruned" if TrialState.PRUNED in states else "complete"


class Means(Mapping[str, Statistic]):
    """The statistics of a candidate's metrics over its repeats, by result key; computed lazily, since few are read."""

    def __init__(self, trials: Iterable[TrialResult]) -> None:
        self._repeats = [trial.values for trial in trials]
        self._known: dict[str, Statistic] = {}

    def __getitem__(self, key: str) -> Statistic:
        if key not in self._known:
            values = [values[key] for values in self._repeats]
            # A mean over some of the repeats would not compare with a mean over all: what one lacks is left out.
            if not all(math.isfinite(value) for value in values):
                raise KeyError(key)
            self._known[key] = statistic(values)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._repeats[0] if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def undefined(self) -> tuple[str, ...]:
        """The result keys that some repeat computed without a finite value, such as a recall over no query."""
        shared = (key for key in self._repeats[0] if all(key in values for values in self._repeats))
        return tuple(key for key in shared if key not in self)


def statistic(values: Sequence[float]) -> Statistic:
    """Mean and sample deviation (n - 1) of at least one finite value; for n = 1 there is no deviation."""
    n = len(values)
    if n == 0 or not all(math.isfinite(value) for value in values):
        raise ValueError(f"a mean needs at least one value and only finite values, found {list(values)}")
    mean = math.fsum(values) / n
    if n == 1:
        return Statistic(mean, None, n)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Statistic(mean, math.sqrt(variance), n)


def interval(found: Statistic, level: float = 0.95) -> tuple[float, float] | None:
    """Student-t interval of the mean at `level`, as MLRC reports it; None for n = 1."""
    half = half_interval(found, level)
    return None if half is None else (found.mean - half, found.mean + half)


def half_interval(found: Statistic, level: float = 0.95) -> float | None:
    """Half the width of the Student-t interval of the mean at `level`; None for n = 1."""
    error = standard_error(found)
    if error is None:
        return None
    # Imported here, since scipy takes half a second and most tables have no intervals.
    from scipy.special import stdtrit

    return float(stdtrit(found.n - 1, (1 + level) / 2)) * error


def standard_error(found: Statistic) -> float | None:
    """The deviation of the mean itself, std / sqrt(n); None for n = 1, or where n is not known (0)."""
    return None if found.std is None or found.n < 2 else found.std / math.sqrt(found.n)


def spread_of(found: Statistic, shown: Spread) -> float | None:
    """The spread that a table prints after a mean; if n is unknown (0), the deviation that the paper printed."""
    if shown == "none":
        return None
    if shown == "std" or not found.n:
        return found.std
    return standard_error(found) if shown == "se" else half_interval(found)


def welch(one: Statistic, other: Statistic) -> float:
    """The two-sided p-value of Welch's t-test (Biometrika 34, 1947) of two means that both have a deviation."""
    from scipy.stats import ttest_ind_from_stats  # imported here, since scipy.stats takes a second

    sides = (one.mean, one.std, one.n, other.mean, other.std, other.n)
    return float(ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def holm(found: Iterable[float | None]) -> list[float | None]:
    """Corrects p-values by Holm's step-down method over all that are not None."""
    kept = list(found)
    tested = sorted((p, at) for at, p in enumerate(kept) if p is not None)
    least = 0.0
    for rank, (p, at) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        kept[at] = least
    return kept


def direction(metric: str, parts: Catalog) -> Better:
    """Whether higher or lower values of the selection metric are better; ConflictError if the catalog does not know."""
    better = metric_facts(metric, parts).better
    if better not in {"higher", "lower"}:
        raise ConflictError(
            f"nothing can be selected by '{metric}': the catalog gives it no direction (better = higher or lower)"
        )
    return cast(Better, better)


def summaries(results: SweepResults, better: Better) -> list[CellSummary]:
    """The summary of each cell of a sweep, in the order of the cells."""
    return summaries_of(by_cell(results), selection(results.spec).key, better)


def summaries_of(candidates: Mapping[int, Sequence[CandidateResult]], key: str, better: Better) -> list[CellSummary]:
    """The summary of each cell from its candidates, selected by the mean of the metric `key`."""
    return [summary_of(cell, its, key, better) for cell, its in timely(candidates.items())]


def summary_of(cell: int, candidates: Sequence[CandidateResult], key: str, better: Better) -> CellSummary:
    """The summary of a cell by its candidate with the best mean of the metric `key`; the first of equals.

    If no candidate has a value of `key` nothing is selected, but an only candidate is shown with its metrics.
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
        status=_cell_status(candidates, found=chosen is not None),
        candidate=None if chosen is None else chosen.index,
        labels={} if chosen is None else chosen.labels,
        selection_key=key,
        score=None if chosen is None else chosen.scores.get(key),
        metrics={} if chosen is None else dict(chosen.metrics),
        candidates=len(candidates),
        coming=() if chosen is None else chosen.coming,
        undefined=undefined,
    )


def _undefined(candidate: CandidateResult) -> tuple[str, ...]:
    return candidate.metrics.undefined if isinstance(candidate.metrics, Means) else ()


def _cell_status(candidates: Sequence[CandidateResult], *, found: bool) -> Status:
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


def by_cell(results: SweepResults) -> dict[int, list[CandidateResult]]:
    """The candidates of each cell with their results, in order."""
    trials: dict[tuple[int, int], list[TrialResult]] = defaultdict(list)
    for trial in results.trials:
        trials[trial.cell, trial.candidate].append(trial)
    repeats: dict[int, int] = {}
    for (cell, _), those in trials.items():
        repeats[cell] = min(repeats.get(cell, len(those)), len(those))
    found: dict[int, list[CandidateResult]] = {cell.index: [] for cell in results.cells}
    for candidate in results.candidates:
        shared = repeats.get(candidate.cell, 0)
        found[candidate.cell].append(aggregate(candidate, trials[candidate.cell, candidate.index], shared))
    return found


def selection(spec: Mapping[str, Any]) -> Select:
    """The selection rule of a normalized spec: split, metric, and key of the score."""
    return Select.model_validate(spec.get("select") or {}, extra="ignore")


def optimism(results: SweepResults, better: Better) -> OptimismView:
    """How much selection inflates the score of each cell; a cell for which that is unknown has the reason."""
    key = selection(results.spec).key
    competing = {
        cell: [one for one in candidates if one.status == "complete" and key in one.scores]
        for cell, candidates in by_cell(results).items()
    }
    runs = runs_of(results, {(cell, one.index) for cell, those in competing.items() for one in those})
    sign = 1 if better == "higher" else -1
    cells = []
    for cell in results.cells:
        its_runs = [run_values(runs[cell.index, one.index], key) for one in competing[cell.index]]
        cells.append(_cell(cell, competing[cell.index], its_runs, sign))
    summary = _SUMMARY.format(key=key)
    return OptimismView(sweep=results.sweep, sweep_name=results.name, key=key, summary=summary, cells=cells)


class Baselines:
    """Finds the baseline of a cell: the cell that has the labels `wanted` and otherwise the labels of that cell."""

    def __init__(self, cells: Iterable[Cell], wanted: Labels) -> None:
        self._wanted = wanted
        having = [cell for cell in cells if wanted.items() <= cell.labels.items()]
        self._cells = {frozenset(cell.labels.items()): cell for cell in having}
        # An axis need not apply to them all: `none` has no eta. The cell that shares most labels is meant.
        self._axes = sorted({tuple(cell.labels) for cell in having}, key=len, reverse=True)

    def of(self, cell: Cell) -> Cell | None:
        """The baseline of a cell, which may be the cell itself; None if the sweep has no such cell."""
        labels = {**cell.labels, **self._wanted}
        for axes in self._axes:
            if all(axis in labels for axis in axes):
                found = self._cells.get(frozenset((axis, labels[axis]) for axis in axes))
                if found:
                    return found
        return None


def runs_of(results: SweepResults, places: Collection[Place]) -> dict[Place, list[TrialResult]]:
    """The trials of the given (cell, candidate) places, in the order of the sweep."""
    found: dict[Place, list[TrialResult]] = {place: [] for place in places}
    for trial in results.trials:
        if (trials := found.get((trial.cell, trial.candidate))) is not None:
            trials.append(trial)
    return found


def run_values(trials: Iterable[TrialResult], key: str) -> dict[Repeat, float]:
    """The finite values of one result key over several trials, by the labels of their repeats."""
    return {
        frozenset(trial.repeat_labels.items()): trial.values[key]
        for trial in trials
        if key in trial.values and math.isfinite(trial.values[key])
    }


Age = Literal["older", "mixed"]
"""`older`: every finished trial of a cell has numbers of older versions; `mixed`: some have."""


@dataclass(frozen=True, slots=True)
class Ages:
    """Which cells of a sweep have numbers of outdated versions of metrics, parts or data."""

    cells: Mapping[int, Age] = field(default_factory=dict)  # without cells whose numbers are all of today's versions
    changed: tuple[str, ...] = ()  # what has other numbers today, such as `metric 'map' (version 1, now 2)`
    whole: bool = False  # whether every cell that has numbers has only older ones


def ages(results: SweepResults, metrics: Iterable[str], catalog: Catalog) -> Ages:
    """Finds cells with outdated numbers; `metrics` are the metrics that are shown or selected by."""
    shown = {f"metric {name!r}" for name in metrics}
    known: dict[str, tuple[str, ...]] = {}
    outdated: defaultdict[int, set[bool]] = defaultdict(set)
    for trial in results.trials:
        if trial.state is TrialState.FINISHED:
            if trial.stamp not in known:
                found = changes(trial.stamp, catalog)
                its = (one for one in found if one.what in shown or not one.what.startswith("metric "))
                known[trial.stamp] = tuple(map(str, its))
            outdated[trial.cell].add(bool(known[trial.stamp]))
    changed = tuple(sorted({change for some in known.values() for change in some}))
    aged: dict[int, Age] = {
        cell: "mixed" if False in old else "older" for cell, old in sorted(outdated.items()) if True in old
    }
    return Ages(aged, changed, bool(aged) and all(aged.get(cell) == "older" for cell in outdated))


def mixture(runs: Iterable[TrialResult]) -> tuple[str, ...]:
    """Sentences on how the trainings behind one number differ in data, code or versions of parts."""
    values: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    origins = dict.fromkeys((run.origin, run.stamp) for run in runs)
    for origin, stamp in origins if len(origins) > 1 else ():
        for path, value in leaves(json.loads(origin) if origin else {}):
            key, _, within = path.partition(".")
            values[ORIGINS.get(key, key), within][_brief(str(value))] = None
        for part, version in (json.loads(stamp).get("versions", {}) if stamp else {}).items():
            values["version", part][str(version)] = None
    return tuple(
        f"{what}{f' of {path}' if path else ''}: {', '.join([*found][:_FEW])}{' ...' if len(found) > _FEW else ''}"
        for (what, path), found in values.items()
        if len(found) > 1
    )


def _brief(value: str) -> str:
    """The beginning of a hash or a commit, with the `-dirty` of the commit."""
    kind, colon, digest = value.partition(":")
    if colon:
        return f"{kind}:{digest[:12]}"
    commit, dash, word = value.partition("-")
    return commit[:12] + dash + word if len(commit) == 40 else value


def _cell(cell: Cell, candidates: Sequence[CandidateResult], runs: Sequence[_Runs], sign: int) -> CellOptimism:
    shared = sorted(set.intersection(*(set(one) for one in runs)) if runs else (), key=sorted)
    scores = [[sign * one[repeat] for repeat in shared] for one in runs]
    means = [math.fsum(one) / len(one) for one in scores if one]
    best = max(means, default=None)
    held = _held_out(scores) if len(scores) > 1 and len(shared) > 1 else None
    return CellOptimism(
        cell=cell.index, labels=dict(cell.labels), candidates=len(candidates), runs=len(shared),
        best=None if best is None else sign * best, held_out=None if held is None else sign * held,
        optimism=None if best is None or held is None else best - held, reason=_reason(len(scores), len(shared)),
        expected=[sign * one for one in expected_best(means)],
    )  # fmt: skip


def _held_out(scores: Sequence[Sequence[float]]) -> float:
    """The mean score of a repeat by the candidate that the other repeats select; the first of equals."""
    judged = []
    for left in range(len(scores[0])):
        others = [math.fsum(value for at, value in enumerate(one) if at != left) for one in scores]
        judged.append(scores[others.index(max(others))][left])
    return math.fsum(judged) / len(judged)


def _reason(candidates: int, repeats: int) -> str:
    if not candidates:
        return "no candidate has finished in every repeat with a score"
    if candidates == 1:
        return "one candidate, so that none was selected from several"
    if not repeats:
        return "no repeat that all candidates share"
    return "one repeat: with it left out, none selects" if repeats == 1 else ""


def expected_best(means: Sequence[float]) -> list[float]:
    """The expected best of n of these scores drawn with replacement, for n = 1, 2, ... up to their number or 1,000."""
    ordered, count = sorted(means), len(means)
    return [
        math.fsum(one * ((at / count) ** n - ((at - 1) / count) ** n) for at, one in enumerate(ordered, 1))
        for n in range(1, min(count, _MOST_DRAWN) + 1)
    ]


def best_trials(cells: Iterable[GridCell], keep: int, better: Better) -> set[int]:
    """The trials of the `keep` candidates of each cell with the best mean scores, and of the candidate it shows."""
    sign = 1 if better == "higher" else -1
    kept: set[int] = set()
    for cell in cells:
        scored = [one for one in cell.candidates if one.score is not None]
        ranked = sorted(scored, key=lambda one: -sign * (one.score or 0.0))  # the first of equals stays first
        for candidate in [*ranked[:keep], *(one for one in cell.candidates if one.selected)]:
            kept.update(square.trial for square in candidate.trials)
    return kept
