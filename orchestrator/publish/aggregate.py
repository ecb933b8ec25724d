"""From trials to candidates to cells: means over repeats, selection, and the statistics of both."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from orchestrator.publish.labels import metric_better
from orchestrator.views.errors import ConflictError, timely
from orchestrator.views.evidence import CellOptimism, OptimismView
from orchestrator.views.runs import Candidate, Cell, CellSummary, Labels, Statistic, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TRIAL_ENDED, TrialState
from orchestrator.views.sweeps import GridCell
from workers.catalog import Catalog
from workers.contract import Select


def statistic(values: Sequence[float]) -> Statistic:
    """Mean and sample deviation (n - 1) of at least one finite value; for n = 1 there is no deviation."""
    n = len(values)
    if n == 0 or not all(math.isfinite(value) for value in values):
        raise ValueError(f"a statistic needs finite values, got {list(values)}")
    mean = math.fsum(values) / n
    if n == 1:
        return Statistic(mean, None, n)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Statistic(mean, math.sqrt(variance), n)


def standard_error(found: Statistic) -> float | None:
    """The deviation of the mean itself, std / sqrt(n); none for n = 1, or where n is not known (0)."""
    return None if found.std is None or found.n < 2 else found.std / math.sqrt(found.n)


def interval(found: Statistic, level: float = 0.95) -> tuple[float, float] | None:
    """Student-t interval of the mean at `level`, as MLRC reports it; none for n = 1."""
    half = half_interval(found, level)
    return None if half is None else (found.mean - half, found.mean + half)


def half_interval(found: Statistic, level: float = 0.95) -> float | None:
    """Half the width of the Student-t interval of the mean at `level`; none for n = 1."""
    error = standard_error(found)
    if error is None:
        return None
    # The quantile itself, and only now: importing it takes half a second, all of scipy.stats a whole one.
    from scipy.special import stdtrit

    return float(stdtrit(found.n - 1, (1 + level) / 2)) * error


def welch(one: Statistic, other: Statistic) -> float:
    """The two-sided p of Welch's t-test (Biometrika 34, 1947) of two means that both have a deviation."""
    from scipy.stats import ttest_ind_from_stats  # only now: scipy.stats takes a second

    sides = (one.mean, one.std, one.n, other.mean, other.std, other.n)
    return float(ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def holm(found: Iterable[float | None]) -> list[float | None]:
    """Each p corrected by Holm's step-down method over all that there are."""
    kept = list(found)
    tested = sorted((p, at) for at, p in enumerate(kept) if p is not None)
    least = 0.0
    for rank, (p, at) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        kept[at] = least
    return kept


CandidateStatus = Literal["complete", "pending", "diverged", "failed", "cancelled", "pruned"]
"""`complete`: every repeat finished ok; `pending`: a repeat is still to come; otherwise why it cannot be selected."""

Place = tuple[int, int]
"""A cell, and a candidate of it."""
Repeat = frozenset[tuple[str, str]]
"""The labels of the repeat axes, which tell the runs of a candidate apart."""

_STARTED = frozenset({TrialState.RUNNING, TrialState.FINISHED, TrialState.FAILED, TrialState.PRUNED})


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """One candidate: its repeats taken together."""

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


def by_cell(outcomes: SweepOutcomes) -> dict[int, list[CandidateOutcome]]:
    """Every cell's candidates in order, in one pass over the trials."""
    trials: dict[tuple[int, int], list[TrialOutcome]] = defaultdict(list)
    for trial in outcomes.trials:
        trials[trial.cell, trial.candidate].append(trial)
    repeats: dict[int, int] = {}
    for (cell, _), those in trials.items():
        repeats[cell] = min(repeats.get(cell, len(those)), len(those))
    found: dict[int, list[CandidateOutcome]] = {cell.index: [] for cell in outcomes.cells}
    for candidate in outcomes.candidates:
        shared = repeats.get(candidate.cell, 0)
        found[candidate.cell].append(aggregate(candidate, trials[candidate.cell, candidate.index], shared))
    return found


def of_cell(outcomes: SweepOutcomes, cell: int) -> list[CandidateOutcome]:
    """One cell's candidates in order."""
    trials: dict[int, list[TrialOutcome]] = defaultdict(list)
    for trial in outcomes.trials_of(cell):
        trials[trial.candidate].append(trial)
    shared = min((len(those) for those in trials.values()), default=0)
    return [aggregate(one, trials[one.index], shared) for one in outcomes.candidates if one.cell == cell]


def runs_of(outcomes: SweepOutcomes, places: Collection[Place]) -> dict[Place, list[TrialOutcome]]:
    """The trials of some candidates in order: references, so that this takes no memory of its own."""
    found: dict[Place, list[TrialOutcome]] = {place: [] for place in places}
    for trial in outcomes.trials:
        if (trials := found.get((trial.cell, trial.candidate))) is not None:
            trials.append(trial)
    return found


def run_values(trials: Iterable[TrialOutcome], key: str) -> dict[Repeat, float]:
    """The finite values of one result key by repeat."""
    return {
        frozenset(trial.repeat_labels.items()): trial.values[key]
        for trial in trials
        if key in trial.values and math.isfinite(trial.values[key])
    }


def aggregate(candidate: Candidate, trials: Sequence[TrialOutcome], shared: int | None = None) -> CandidateOutcome:
    """One candidate from its repeats, of which the first `shared` decide on its selection."""
    first, further = trials[:shared], trials[len(trials) if shared is None else shared :]
    status = _status(first)
    scores = Means(first) if status == "complete" else {}
    reproduced = [trial for trial in further if trial.state is TrialState.FINISHED and not trial.diverged]
    return CandidateOutcome(
        index=candidate.index,
        labels=candidate.labels,
        status=status,
        started=any(trial.state in _STARTED for trial in trials),
        metrics=Means([*first, *reproduced]) if status == "complete" and reproduced else scores,
        scores=scores,
        growing=any(trial.state not in TRIAL_ENDED for trial in further),
        coming=tuple(dict.fromkeys(name for trial in trials for name in trial.coming)),
    )


def _status(trials: Sequence[TrialOutcome]) -> CandidateStatus:
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
    """By key, of some repeats: each is computed when it is asked for, since of most candidates only one is."""

    def __init__(self, trials: Iterable[TrialOutcome]) -> None:
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
        """The keys that have no value in some repeat, though it was computed: a recall of no query."""
        shared = (key for key in self._repeats[0] if all(key in values for values in self._repeats))
        return tuple(key for key in shared if key not in self)


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


def _undefined(candidate: CandidateOutcome) -> tuple[str, ...]:
    return candidate.metrics.undefined if isinstance(candidate.metrics, Means) else ()


def _cell_status(candidates: Sequence[CandidateOutcome], *, found: bool) -> Status:
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


_SAID: Final = (
    "Of the score that candidates are selected by ({key}): each repeat is left out in turn, the others select, and the "
    "one left out judges (nested resampling over repeats). The expected best of n is that of n candidates drawn with "
    "replacement from those of the cell (Dodge et al., EMNLP 2019)."
)
MOST_DRAWN: Final = 1_000
"""Up to how many draws the expected best is told."""
_Runs = Mapping[Repeat, float]


def optimism(outcomes: SweepOutcomes, better: Better) -> OptimismView:
    """How optimistic the selection of each cell is; a cell where nothing can be said has the reason."""
    key = selection(outcomes.spec).key
    competing = {
        cell: [one for one in candidates if one.status == "complete" and key in one.scores]
        for cell, candidates in by_cell(outcomes).items()
    }
    runs = runs_of(outcomes, {(cell, one.index) for cell, those in competing.items() for one in those})
    sign = 1 if better == "higher" else -1
    cells = []
    for cell in outcomes.cells:
        its_runs = [run_values(runs[cell.index, one.index], key) for one in competing[cell.index]]
        cells.append(_cell(cell, competing[cell.index], its_runs, sign))
    said = _SAID.format(key=key)
    return OptimismView(sweep=outcomes.sweep, sweep_name=outcomes.name, key=key, said=said, cells=cells)


def _cell(cell: Cell, candidates: Sequence[CandidateOutcome], runs: Sequence[_Runs], sign: int) -> CellOptimism:
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


def _reason(candidates: int, repeats: int) -> str:
    if not candidates:
        return "no candidate has finished in every repeat with a score"
    if candidates == 1:
        return "one candidate, so that none was selected from several"
    if not repeats:
        return "no repeat that all candidates share"
    return "one repeat: with it left out, none selects" if repeats == 1 else ""


def _held_out(scores: Sequence[Sequence[float]]) -> float:
    """The mean score of a repeat by the candidate that the other repeats select; the first of equals."""
    judged = []
    for left in range(len(scores[0])):
        others = [math.fsum(value for at, value in enumerate(one) if at != left) for one in scores]
        judged.append(scores[others.index(max(others))][left])
    return math.fsum(judged) / len(judged)


def expected_best(means: Sequence[float]) -> list[float]:
    """The expected largest of 1, 2, ... of these numbers, drawn with replacement: as often as there are, or 1,000."""
    ordered, count = sorted(means), len(means)
    return [
        math.fsum(one * ((at / count) ** n - ((at - 1) / count) ** n) for at, one in enumerate(ordered, 1))
        for n in range(1, min(count, MOST_DRAWN) + 1)
    ]


def best_trials(cells: Iterable[GridCell], keep: int, better: Better) -> set[int]:
    """The trials of the `keep` best candidates of each cell by their mean score, and of the one that it shows."""
    sign = 1 if better == "higher" else -1
    kept: set[int] = set()
    for cell in cells:
        scored = [one for one in cell.candidates if one.score is not None]
        ranked = sorted(scored, key=lambda one: -sign * (one.score or 0.0))  # the first of equals stays first
        for candidate in [*ranked[:keep], *(one for one in cell.candidates if one.selected)]:
            kept.update(square.trial for square in candidate.trials)
    return kept
