"""How much of a sweep's work is done, counted in the steps of its trials."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record.schema import training, trial
from orchestrator.views.states import TrialState
from orchestrator.views.sweeps import Counts, StepCount

MOST_WEIGHED: Final = 20_000
"""Trials of a sweep that has ended whose steps are read; of a greater one each trial counts the same."""


@dataclass(slots=True)
class Steps:
    """Those of the trials in one state (a diverged one counts as a state of its own)."""

    trials: int = 0
    planned: int = 0
    """Of those of which it is known."""
    trained: int = 0
    """Of the same, at most what is planned."""
    unknown: int = 0
    """Trials whose length nothing has told yet."""


@dataclass(slots=True)
class StepTally:
    """A sweep's steps by kind of trial."""

    kinds: dict[str, Steps] = field(default_factory=lambda: defaultdict(Steps))

    @property
    def mean(self) -> float | None:
        """The steps of a trial, as far as lengths are known."""
        known = sum(one.trials - one.unknown for one in self.kinds.values())
        return sum(one.planned for one in self.kinds.values()) / known if known else None

    def expected_share(self) -> float:
        """The share of their steps that trials come to: early stopping and patience end some before."""
        ended = [self.kinds[kind] for kind in ("finished", "pruned") if kind in self.kinds]
        planned, trained = sum(one.planned for one in ended), sum(one.trained for one in ended)
        return trained / planned if planned and trained and sum(one.trials for one in ended) >= LEAST_ENDED else 1.0


LEAST_ENDED: Final = 3
"""Trials that have ended before it is told from them how early others end."""


def _sums() -> sa.Select[Any]:
    planned = training.c.total_steps
    trained = sa.case((training.c.step < planned, training.c.step), else_=planned)
    sums = (sa.func.count().label("n"), sa.func.sum(planned).label("planned"), sa.func.sum(trained).label("trained"))
    unknown = sa.func.sum(sa.case((planned == 0, 1), else_=0)).label("unknown")
    return (
        sa.select(trial.c.sweep_id, trial.c.state, trial.c.diverged, *sums, unknown)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id.in_(sa.bindparam("sweeps", expanding=True)))
        .group_by(trial.c.sweep_id, trial.c.state, trial.c.diverged)
    )


_SUMS: Final = _sums()  # made once: pages ask it every few seconds


def tallies(connection: sa.Connection, sweeps: Sequence[int]) -> dict[int, StepTally]:
    """By sweep the steps of its trials by their kind."""
    by_sweep = {sweep: StepTally() for sweep in sweeps}
    for row in connection.execute(_SUMS, {"sweeps": sweeps}) if sweeps else ():
        kind = "diverged" if row.diverged and row.state == TrialState.FINISHED else row.state
        steps = by_sweep[row.sweep_id].kinds[kind]
        steps.trials += row.n
        steps.planned += int(row.planned or 0)
        steps.trained += int(row.trained or 0)
        steps.unknown += int(row.unknown or 0)
    return by_sweep


def counted(found: StepTally, total: int) -> StepCount:
    """The steps of a sweep of `total` planned trials; of those without a row yet as many as the others have."""
    rows = sum(steps.trials for steps in found.kinds.values())
    mean = found.mean
    if not mean:
        return _by_trials({kind: steps.trials for kind, steps in found.kinds.items()}, total)
    shares: dict[str, float] = defaultdict(float)
    for kind, steps in found.kinds.items():
        whole = steps.planned + steps.unknown * mean
        match kind:
            case "pruned":
                shares[kind] += steps.trained
            case "running" | "waiting":  # one whose machine was lost goes on from its checkpoint
                shares["running"] += steps.trained
                shares["waiting"] += whole - steps.trained
            case _:
                shares[kind] += whole
    shares["waiting"] += max(0, total - rows) * mean
    return _count("steps", shares)


def _by_trials(trials: Mapping[str, int], total: int) -> StepCount:
    """Every trial counted the same: those that run have not done anything yet."""
    rows = sum(trials.values())
    waiting = sum(trials.get(kind, 0) for kind in ("running", "waiting")) + max(0, total - rows)
    ended = {kind: number for kind, number in trials.items() if kind not in ("running", "waiting")}
    return _count("trials", ended | {"waiting": waiting})


def _count(unit: Literal["steps", "trials"], shares: Mapping[str, float]) -> StepCount:
    whole = {kind: round(number) for kind, number in shares.items() if round(number)}
    total, done = sum(whole.values()), sum(whole.get(kind, 0) for kind in DONE)
    percent = 100 * done // total if total else 0
    if whole.get("running"):  # all of its steps may be trained, but what comes after the last one is not done
        percent = min(99, percent)
    return StepCount(unit=unit, total=total, done=done, percent=percent, shares=whole)


DONE: Final = ("finished", "diverged", "pruned", "running")
"""Kinds of trials whose trained steps are done: a diverged one came to its end, a failed or cancelled one never did."""


class StepCounter:
    """Counts, and remembers what nothing changes any more."""

    def __init__(self) -> None:
        self._ended: dict[int, tuple[str, StepCount]] = {}

    def of_ended(self, connection: sa.Connection, sweep: int, total: int, counts: Counts) -> StepCount:
        """The steps of a sweep that has ended."""
        key = f"{total} {counts.model_dump_json()}"
        known = self._ended.get(sweep)
        if known is None or known[0] != key:
            known = (key, _of_ended(connection, sweep, total, counts))
            self._ended.pop(sweep, None)
            self._ended[sweep] = known
            while len(self._ended) > _KEPT:
                self._ended.pop(next(iter(self._ended)), None)
        return known[1]


_KEPT: Final = 1_024  # sweeps


def _of_ended(connection: sa.Connection, sweep: int, total: int, counts: Counts) -> StepCount:
    if counts.total <= MOST_WEIGHED:
        return counted(tallies(connection, [sweep])[sweep], total)
    trials = {state.value: getattr(counts, state) for state in TrialState}
    trials |= {"finished": counts.finished - counts.diverged, "diverged": counts.diverged}
    return _by_trials(trials, total)
