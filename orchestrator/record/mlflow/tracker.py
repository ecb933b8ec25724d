"""What a tracker (MLflow) is sent: runs as plain data, each whole enough that sending it again changes nothing."""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

from orchestrator.record.mirror_runs import CurvePoint
from orchestrator.views.errors import MetricsweepError, UnavailableError

_MAX_KEY: Final = 250  # characters

RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, slots=True)
class DatasetMirror:
    """The data that a run was trained on."""

    name: str
    digest: str  # of its content


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What a sweep shows beside its runs, and which of their numbers people look at. Result keys are ours."""

    axes: Sequence[str] = ()  # those that name the cells, and those of which a candidate was chosen
    columns: Sequence[str] = ()  # the result keys that its tables print, in order
    selected_by: str = ""  # the result key by which the best is the best
    better: str = "higher"
    captions: Sequence[str] = ()  # of its tables, once it has ended
    files: Mapping[str, bytes] = field(default_factory=dict)  # once it has ended: tables, figures, the spec; by path


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
    sweep: str | None = None  # the uid of the sweep whose experiment it is in
    parent: str | None = None  # the tracker's id of the parent run
    params: Mapping[str, str] = field(default_factory=dict)  # write-once: what differs later needs another run
    tags: Mapping[str, str] = field(default_factory=dict)
    points: Sequence[CurvePoint] = ()  # those not sent before
    metrics: Mapping[str, float] = field(default_factory=dict)  # final values, sent when the run ends
    files: Mapping[str, bytes] = field(default_factory=dict)  # artifacts by path within the run
    dataset: DatasetMirror | None = None


class TrackerRefusedError(UnavailableError):
    """The tracker answered and refused; waiting alone does not help, but the run may be tried again."""


class LostError(MetricsweepError):
    """What was told before is not there any more: everything is to be told anew."""


class RunGoneError(LostError):
    """A run is not on the server, was deleted there, or has parameters that are others now."""


class ExperimentGoneError(LostError):
    """An experiment is not on the server, or is another sweep's there."""


class Tracker(Protocol):
    """Shows runs to people. Any method raises UnavailableError when the service does not answer."""

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the experiment called `name`, made if it is missing, with these tags; `uid` is one of them."""

    def remove(self, uid: str) -> None:
        """Take a sweep's experiment out of sight; one that is gone already is no error."""

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Bring one run up to date and return its id; raises LostError, and then shows nothing of it any more."""

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Take runs out of sight whose key another run has; returns how many.

        `known` gives the runs that we know by key: of several it is that one that stays.
        """


def accepted(name: str) -> str:
    """`name` as MLflow accepts keys: `test/recall@1` becomes `test/recall_at_1`."""
    clean = re.sub(r"[^/\w.\- :]", "_", name.replace("@", "_at_"))
    clean = posixpath.normpath(clean).lstrip("/")
    while clean.startswith("../"):
        clean = clean[3:]
    return (clean if clean not in {"", ".", ".."} else "_")[:_MAX_KEY]
