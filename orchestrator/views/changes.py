"""Changes as event streams tell them: what became another, how it is now, and where it is shown whole."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.pages import View


class ChangeKind(StrEnum):
    """The types of events."""

    SWEEP = "sweep"
    """A sweep was submitted, entered a state, was given another priority, grew, or was noted or tagged."""
    NOTICE = "notice"
    """What its trials wait for is another: `notice` says it, and is absent where they wait for nothing more."""
    CELL = "cell"
    """A cell was summed up, will be anew, or was noted or tagged."""
    TRIAL = "trial"
    """A trial entered a state, or was noted or tagged."""
    TRIALS = "trials"
    """More than a hundred trials of a sweep did at once: look at all of it."""
    PROGRESS = "progress"
    """A trial came further; of several reports within a second the last is told."""
    STALLED = "stalled"
    """A trial was silent for so long that it was stopped (`slot.stall_minutes`)."""
    REQUEST = "request"
    """Something was asked of a sweep, or the conductor has answered."""


class ChangeView(View):
    """One event. It says how things are when it is sent, not what they were when it was noted."""

    type: ChangeKind
    sweep: int
    url: str
    """Where the API shows it whole."""
    name: str | None = None
    """The sweep's."""
    state: SweepState | TrialState | None = None
    """Of the sweep or of the trial, as `type` says; none: it is deleted."""
    cell: int | None = None
    trial: int | None = None
    request: int | None = None
    step: int | None = None
    total_steps: int | None = None
    score: float | None = None
    """The metric that its recipe selects by, once it has finished."""
    diverged: bool | None = None
    settled: bool | None = Field(default=None, description="Whether the cell is summed up.")
    notice: str | None = None
    error: str | None = None


class Told(NamedTuple):
    """A change with the id that it is told under."""

    id: int
    view: ChangeView


class ChangeSpan(NamedTuple):
    """Changes in the order of their ids, and between which ids nothing is missing."""

    since: int
    """No change after this id, and up to `newest`, is unknown; what was before may have been pruned."""
    newest: int
    changes: list[Told]
