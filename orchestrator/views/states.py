"""States of sweeps, trials and attempts, and the steps between them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar


class SweepState(StrEnum):
    """Where a submitted spec stands."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TrialState(StrEnum):
    """Where a trial, or the training it points to, stands."""

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
"""Of a sweep in which something may train: what trains in a paused one goes on."""
TRIAL_ACTIVE: Final = frozenset({TrialState.WAITING, TrialState.RUNNING})

SWEEP_STEPS: Final[Mapping[SweepState, frozenset[SweepState]]] = {
    SweepState.QUEUED: frozenset({SweepState.RUNNING, SweepState.FAILED, SweepState.CANCELLED}),
    SweepState.RUNNING: frozenset({SweepState.PAUSED, SweepState.FINISHED, SweepState.FAILED, SweepState.CANCELLED}),
    SweepState.PAUSED: frozenset({SweepState.RUNNING, SweepState.CANCELLED}),
    SweepState.FINISHED: frozenset({SweepState.RUNNING}),  # extended, or retried in full
    SweepState.FAILED: frozenset({SweepState.RUNNING, SweepState.QUEUED}),  # retried; queued if it has no trials yet
    SweepState.CANCELLED: frozenset({SweepState.RUNNING, SweepState.QUEUED}),  # likewise
}

TRIAL_STEPS: Final[Mapping[TrialState, frozenset[TrialState]]] = {
    TrialState.WAITING: frozenset(
        {TrialState.RUNNING, TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED}
    ),  # straight to an end when the training it shares has ended
    TrialState.RUNNING: frozenset(
        {TrialState.WAITING, TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED}
    ),  # back to waiting when its slot was lost
    TrialState.FINISHED: frozenset(),
    TrialState.FAILED: frozenset({TrialState.WAITING, TrialState.FINISHED}),
    TrialState.CANCELLED: frozenset({TrialState.WAITING, TrialState.FINISHED}),
    TrialState.PRUNED: frozenset({TrialState.WAITING}),
}


def before(steps: Mapping[State, frozenset[State]], state: State) -> frozenset[State]:
    """The states from which `state` may be entered: the guard of an UPDATE."""
    return frozenset(old for old, following in steps.items() if state in following)
