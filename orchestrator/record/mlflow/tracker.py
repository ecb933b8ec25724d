"""The interface of a tracker (MLflow), and its runs as plain data. Sending a run again changes nothing."""

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, Protocol

from orchestrator.record.outbox import CurvePoint
from orchestrator.views.errors import MetricsweepError, UnavailableError

_MAX_KEY: Final = 250  # characters

RunStatus = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, slots=True)
class DatasetMirror:
    """The data set that a run was trained on, as MLflow shows it."""

    name: str
    digest: str  # of its content


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The files and descriptions that MLflow shows of a sweep, and the metrics to show first."""

    axes: Sequence[str] = ()  # compare and tune axes
    columns: Sequence[str] = ()  # the result keys that its tables print, in order
    selected_by: str = ""  # the result key of the selection
    better: str = "higher"
    captions: Sequence[str] = ()  # of its tables, once it has ended
    files: Mapping[str, bytes] = field(default_factory=dict)  # by path, once it has ended: tables, figures, the spec


@dataclass(frozen=True, slots=True)
class RunMirror:
    """A run as MLflow should show it. `key` is unique in the experiment and is stored as a tag, for repair."""

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
    """MLflow answered and refused. Waiting alone does not help, but the run may be tried again."""


class LostError(MetricsweepError):
    """MLflow has lost what was sent before, so everything has to be sent again."""


class RunGoneError(LostError):
    """An MLflow run is missing, was deleted, or has other params."""


class ExperimentGoneError(LostError):
    """An MLflow experiment is missing or belongs to another sweep."""


class Tracker(Protocol):
    """The interface of MLflow as we use it. Methods raise UnavailableError if the server does not answer."""

    def experiment(self, name: str, uid: str, tags: Mapping[str, str]) -> str:
        """The id of the experiment with the tag `uid`, created with this name and tags if it is missing."""

    def remove(self, uid: str) -> None:
        """Remove the experiment of a sweep, if the tracker has it."""

    def mirror(self, experiment: str, run: RunMirror) -> str:
        """Create or update a run and return its id; raises LostError if the tracker no longer has it."""

    def unite(self, experiment: str, known: Callable[[Iterable[str]], Mapping[str, str]]) -> int:
        """Remove runs that have the same key as another run; returns how many.

        Of several runs with a key, the run of `known` (ids by key) stays.
        """


def accepted(name: str) -> str:
    """A metric's or parameter's name as MLflow accepts it: `test/recall@1` becomes `test/recall_at_1`."""
    clean = re.sub(r"[^/\w.\- :]", "_", name.replace("@", "_at_"))
    clean = posixpath.normpath(clean).lstrip("/")
    while clean.startswith("../"):
        clean = clean[3:]
    return (clean if clean not in {"", ".", ".."} else "_")[:_MAX_KEY]
