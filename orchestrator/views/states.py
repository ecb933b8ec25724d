"""States of sweeps and trials, and the transitions between them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar


class SweepState(StrEnum):
    """The state of a sweep."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TrialState(StrEnum):
    """The state of a trial, or of the training it points to."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PRUNED = "pruned"


State = TypeVar("State", bound=StrEnum)

SWEEP_ENDED: Final = frozenset({SweepState.FINISHED, SweepState.FAILED, SweepState.CANCELLED})
TRIAL_ENDED: Final = frozenset({TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED})

SWEEP_GOING: Final = frozenset({SweepState.RUNNING, SweepState.PAUSED})
"""States in which trials may train; a paused sweep finishes its running trials."""
TRIAL_ACTIVE: Final = frozenset({TrialState.WAITING, TrialState.RUNNING})

SWEEP_STEPS: Final[Mapping[SweepState, frozenset[SweepState]]] = {
    SweepState.QUEUED: frozenset({SweepState.RUNNING, SweepState.FAILED, SweepState.CANCELLED}),
    SweepState.RUNNING: frozenset({SweepState.PAUSED, SweepState.FINISHED, SweepState.FAILED, SweepState.CANCELLED}),
    SweepState.PAUSED: frozenset({SweepState.RUNNING, SweepState.CANCELLED}),
    SweepState.FINISHED: frozenset({SweepState.RUNNING}),  # extended or retried
    SweepState.FAILED: frozenset({SweepState.RUNNING, SweepState.QUEUED}),  # retried; queued if it has no trials yet
    SweepState.CANCELLED: frozenset({SweepState.RUNNING, SweepState.QUEUED}),  # likewise
}

TRIAL_STEPS: Final[Mapping[TrialState, frozenset[TrialState]]] = {
    TrialState.WAITING: frozenset(
        {TrialState.RUNNING, TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED}
    ),  # directly to an end if the training it shares has ended
    TrialState.RUNNING: frozenset(
        {TrialState.WAITING, TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED}
    ),  # back to waiting if its slot was lost
    TrialState.FINISHED: frozenset(),
    TrialState.FAILED: frozenset({TrialState.WAITING, TrialState.FINISHED}),
    TrialState.CANCELLED: frozenset({TrialState.WAITING, TrialState.FINISHED}),
    TrialState.PRUNED: frozenset({TrialState.WAITING}),
}


def before(steps: Mapping[State, frozenset[State]], state: State) -> frozenset[State]:
    """The states from which `state` may be entered, for the WHERE condition of an UPDATE."""
    return frozenset(old for old, following in steps.items() if state in following)
