"""One attempt as an engine gets it, and why one ends without a result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.spec.slot import Slot


@dataclass(frozen=True, slots=True)
class AskedEvaluation:
    """What takes the place of a training: further metrics of the weights that another one has kept."""

    weights: str  # the file, relative to the storage: <training>/<number>/best.pt
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt at one training, handed to an engine."""

    attempt: str  # UUID
    training: str  # UUID
    number: int  # of the attempt, from 1
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    slot: Slot
    resume: str | None = None  # checkpoint to continue from, relative to the storage: <training>/<number>/last.pt
    holder: str | None = None  # of one that an earlier conductor left: the slot that trains it; empty: none was noted
    seen: int = 0  # progress messages already recorded; an adopted slot replays what follows
    need: str | None = None  # the key of what it reads of a data root
    label: str = ""  # what a person calls it: its sweep, and the labels of its first trial
    lacking: tuple[str, ...] = ()  # the nodes that were seen not to have it
    evaluation: AskedEvaluation | None = None  # what is done in place of training
    sweep: int | None = None  # of its first trial, and that trial's id: what a log says of it
    trial: int | None = None

    @property
    def ids(self) -> dict[str, int | str | None]:
        """What stands beside a line of a log about it."""
        return {"sweep": self.sweep, "trial": self.trial, "attempt": self.attempt}


FailureKind = Literal["recipe", "infrastructure", "stalled", "missing", "damaged", "kept_weights"]
"""`missing`, `damaged`: of the data set or the weights; the machine's data root is to be looked at.

`kept_weights`: those that an evaluation reads are missing, damaged or of another recipe."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended without a result."""

    kind: FailureKind
    message: str  # one line: the exception's type and text
    trace: str = ""  # the traceback, or the last lines of the log
    begun: bool = True  # False: its slot was lost before it was there, so that the training had no part in it
