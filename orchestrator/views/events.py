"""What happens to attempts, cells and sweeps, as the conductor tells it to the recorder."""

from dataclasses import dataclass

from orchestrator.views.orders import Failure
from orchestrator.views.outcomes import CellSummary
from workers.contract import Progress, Result


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt runs on a slot."""

    attempt: str
    holder: str  # the slot's name
    host: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """An attempt reported; `seq` counts its messages from 1, so that a replay changes nothing."""

    attempt: str
    seq: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Finished:
    """An attempt gave its result, `ok` or `diverged`."""

    attempt: str
    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt ended without a result; with `requeue` its training waits for another attempt."""

    attempt: str
    failure: Failure
    requeue: bool


@dataclass(frozen=True, slots=True)
class AttemptStopped:
    """An attempt was stopped because nobody wants its training any more, or was not begun for a `reason`."""

    attempt: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CellSettled:
    """All trials of a cell ended and its candidate is selected."""

    sweep: int
    summary: CellSummary


@dataclass(frozen=True, slots=True)
class SweepSettled:
    """All trials of a sweep ended; its tables are final until it is retried."""

    sweep: int


Event = Started | Progressed | Finished | Failed | AttemptStopped | CellSettled | SweepSettled
