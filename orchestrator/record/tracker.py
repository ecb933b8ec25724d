"""What a tracker (MLflow) is told: runs as plain data, each sent whole enough that sending it again changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One value of a curve; its time is fixed when it is recorded, so that a second sending is the same."""

    key: str
    value: float
    step: int
    at: datetime


@dataclass(frozen=True, slots=True)
class RunMirror:
    """A run as the tracker should show it. `key` is unique in the experiment and is a tag, for repair."""

    kind: Literal["trial", "cell", "sweep"]
    key: str  # trial uid, "<sweep uid>/cell/<index>" or "<sweep uid>/summary"
    run: str | None  # the tracker's id, once known
    name: str
    status: RunStatus
    started: datetime
    ended: datetime | None
    parent: str | None = None  # the tracker's id of the parent run
    params: Mapping[str, str] = field(default_factory=dict)  # write-once: only what a recipe fixes
    tags: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[CurvePoint] = ()  # those not sent before
    metrics: Mapping[str, float] = field(default_factory=dict)  # final values, sent when the run ends
    files: Mapping[str, bytes] = field(default_factory=dict)  # artifacts by path within the run


class Tracker(Protocol):
    """Shows runs to people. Any method raises UnavailableError when the service does not answer."""

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the experiment called `name`, made if it is missing; `uid` is its tag."""

    def remove(self, experiment: str) -> None:
        """Take an experiment out of sight; one that is gone already is no error."""

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date and return its id."""
