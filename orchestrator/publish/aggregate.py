"""Trials to candidates: the mean over repeats of every result key, and whether a candidate may be selected."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.publish.statistics import statistic
from orchestrator.views.runs import Candidate, Labels, Statistic, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TRIAL_ENDED, TrialState

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
