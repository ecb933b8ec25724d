"""Data shared by plan, run, record and publish: changes, orders, plans, events, results and provenance."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from orchestrator.spec.spec import Slot, Span
from orchestrator.views.pages import View
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import FurtherMetrics, Need
from workers.contract import Progress, Recipe, Result


class ChangeKind(StrEnum):
    """The kind of object that changed: sweep, cell, trial, ..."""

    SWEEP = "sweep"  # a sweep was submitted, extended or annotated, or its state or priority changed
    NOTICE = "notice"  # the `notice` of a sweep changed; it is absent if its trials wait for nothing
    CELL = "cell"  # a cell was settled, reopened or annotated
    TRIAL = "trial"  # the state of a trial changed, or it was annotated
    TRIALS = "trials"  # more than a hundred trials of a sweep changed at once
    PROGRESS = "progress"  # a trial progressed; at most one event a second
    STALLED = "stalled"  # a trial was stopped after being silent for too long (`slot.stall_minutes`)
    REQUEST = "request"  # a sweep got a request, or the conductor has answered one


class ChangeView(View):
    """A change of a sweep, cell or trial, with the state when the event is sent, not when it was recorded."""

    type: ChangeKind
    sweep: int
    url: str  # of the changed object in the API
    name: str | None = None  # of the sweep
    state: SweepState | TrialState | None = None  # of the sweep or the trial, by `type`; null if it is deleted
    cell: int | None = None
    trial: int | None = None
    request: int | None = None
    step: int | None = None
    total_steps: int | None = None
    score: float | None = None  # the metric by which its recipe selects, once it has finished
    diverged: bool | None = None
    settled: bool | None = Field(default=None, description="Whether the result of the cell is complete.")
    notice: str | None = None
    error: str | None = None


class ChangeEvent(NamedTuple):
    """A change for event streams and its id."""

    id: int
    view: ChangeView


class ChangeSpan(NamedTuple):
    """The changes with ids after `since` and up to `newest`, in order; earlier ones may have been pruned."""

    since: int
    newest: int
    changes: list[ChangeEvent]


@dataclass(frozen=True, slots=True)
class RequestedEvaluation:
    """The evaluation of further metrics of kept weights, instead of a training."""

    weights: str  # the file, relative to the storage: <training>/<number>/best.safetensors
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt at one training, for an engine."""

    attempt: str  # UUID
    training: str  # UUID
    number: int  # of the attempt, from 1
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    slot: Slot
    resume: str | None = None  # checkpoint to continue from, relative to the storage: <training>/<number>/last.pt
    holder: str | None = None  # the slot of an earlier conductor's order; empty if none was recorded
    seen: int = 0  # messages that are recorded already; an adopted slot repeats the others
    need: str | None = None  # the key of what it reads from a data root
    label: str = ""  # for people: its sweep, and the labels of its first trial
    lacking: tuple[str, ...] = ()  # nodes that do not have its data
    evaluation: RequestedEvaluation | None = None  # instead of a training
    sweep: int | None = None  # of its first trial
    trial: int | None = None  # its first trial

    @property
    def ids(self) -> dict[str, int | str | None]:
        """The ids of the sweep, trial, training and attempt, for lines of the log."""
        return {"sweep": self.sweep, "trial": self.trial, "attempt": self.attempt}


FailureKind = Literal["recipe", "infrastructure", "stalled", "missing", "damaged", "kept_weights"]
"""`missing`, `damaged`: the data set or the published weights, so that the data root is inspected again.

`kept_weights`: the weights of an evaluation are missing, damaged or of another recipe."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why an attempt ended without a result."""

    kind: FailureKind
    message: str  # one line: the exception's type and text
    trace: str = ""  # the traceback, or the last lines of the log
    begun: bool = True  # False if its slot was lost before the training began


Labels = Mapping[str, str]  # the label of the chosen alternative by axis, in the order of the axes


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a plan: one point of the compare axes."""

    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate of a plan: one point of the tune axes in a cell; `index` counts within the cell, from 0."""

    cell: int
    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a search varies in a cell: labels of alternatives, or else a range of numbers."""

    axis: str
    name: str  # unique among the dimensions of a cell; an axis has several with different `when`
    when: Mapping[str, tuple[str, ...]]  # labels of earlier axes of the search under which it applies
    labels: tuple[str, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A planned trial (cell, candidate, repeat) and the completed recipe of its training."""

    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    recipe: Recipe
    fingerprint: str
    slot: Slot | None = None  # None means that of its sweep
    document: Mapping[str, Any] | None = None  # the recipe as JSON, if it was made already
    need: Need | None = None  # what its training reads from a data root
    further: FurtherMetrics | None = None  # of its recipe; None if it cannot be evaluated from kept weights


@dataclass(frozen=True, slots=True)
class TrialKey:
    """An existing trial, identified by its indices and its labels."""

    cell: int
    cell_labels: Labels
    candidate: int
    candidate_labels: Labels
    repeat: int
    repeat_labels: Labels
    fingerprint: str
    stamp: str = ""  # of the versions that its training was planned with
    trial: int = 0
    base: str = ""  # the fingerprint of its recipe without what kept weights give
    further: tuple[str, ...] = ()  # what these give to its recipe, and to the evaluation that it waits for


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """An existing trial with the plan that adds further metrics."""

    trial: int
    plan: PlannedTrial


@dataclass(frozen=True, slots=True)
class SweepLook:
    """An extension of a sweep as a look: its numbers may have been seen before seeds were added."""

    at: datetime
    position: int  # of the first added trial
    finished: int  # trials that had finished by then


@dataclass(frozen=True, slots=True)
class Extension:
    """The wider spec of a sweep, and the trials and metrics that it adds."""

    text: str
    spec: Mapping[str, Any]
    total: int
    cells: Sequence[Cell]
    candidates: Sequence[Candidate]
    trials: Sequence[PlannedTrial]
    measured: Sequence[MeasuredTrial] = ()


@dataclass(frozen=True, slots=True)
class QuerySums:
    """The per-class sums of the scores of test queries of a training; numpy arrays of shape [classes]."""

    identity: str  # of the queries, their classes and the data; only equal ones are paired
    checkpoint: str  # of the weights: `best` or `last`
    counts: Any  # queries of each class, int64
    sums: Mapping[str, Any]  # by metric, such as `recall@1`, the sums of their scores, float64


QuerySource = Callable[[Sequence[int], str], tuple[Mapping[int, QuerySums], Mapping[int, str]]]
"""Reads scores of queries: from trials and a split, the sums by trial, and the reason for each trial without them."""


def nowhere(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
    """The source of query scores for results that have none."""
    return {}, dict.fromkeys(trials, "scores per query are not at hand here")


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one trial from which a table is computed."""

    trial: int  # its id
    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    state: TrialState
    diverged: bool = False
    reused: bool = False
    values: Mapping[str, float] = field(default_factory=dict)  # metrics by checkpoint/split/metric, once finished
    stamp: str = ""  # of the versions of its plan, once finished
    origin: str = ""  # of its data and code (`origin_of`), once finished
    coming: tuple[str, ...] = ()  # metrics that are being evaluated from its kept weights
    position: int = 0  # in the order in which trials were added to the sweep
    seconds: float | None = None  # of its training, once finished


NO_SWEEP: Final = 0  # the number of results without a sweep


@dataclass(frozen=True, slots=True)
class SweepResults:
    """The results of a sweep from which a table is computed."""

    sweep: int
    name: str
    state: str
    spec: Mapping[str, Any]  # the normalized spec, as `spec.Spec` dumps it
    cells: tuple[Cell, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[TrialResult, ...]
    queries: QuerySource = field(default=nowhere, compare=False, repr=False)  # for tables that cover test queries

    def trials_of(self, cell: int) -> Iterable[TrialResult]:
        """The trials of one cell, in order."""
        return (trial for trial in self.trials if trial.cell == cell)


@dataclass(frozen=True, slots=True)
class Statistic:
    """The mean and standard deviation of a metric over repeats; `std` is the sample's, `None` for n = 1."""

    mean: float
    std: float | None
    n: int


@dataclass(frozen=True, slots=True)
class CellSummary:
    """The selected candidate of a cell with its statistics."""

    cell: int
    status: Literal["complete", "partial", "failed", "diverged", "missing"]
    candidate: int | None  # index within the cell
    labels: Labels  # of the selected candidate
    selection_key: str
    score: Statistic | None
    metrics: Mapping[str, Statistic]  # by checkpoint/split/metric
    candidates: int  # that competed
    coming: tuple[str, ...] = ()  # metrics that are still being evaluated for some repeat
    undefined: tuple[str, ...] = ()  # keys without a value, such as a recall of no query


@dataclass(frozen=True, slots=True)
class Started:
    """The event that an attempt runs on a slot."""

    attempt: str
    holder: str  # the slot's name
    host: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """The event that an attempt reported progress; `seq`, the number of its message, makes it idempotent."""

    attempt: str
    seq: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class Finished:
    """The event that an attempt ended with a result, `ok` or `diverged`."""

    attempt: str
    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """The event that an attempt ended without a result; with `requeue` its training waits for another attempt."""

    attempt: str
    failure: Failure
    requeue: bool


@dataclass(frozen=True, slots=True)
class AttemptStopped:
    """The event that an attempt was stopped as not needed any more, or did not begin for a `reason`."""

    attempt: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CellSettled:
    """The event that all trials of a cell have ended and its candidate is selected."""

    sweep: int
    summary: CellSummary


@dataclass(frozen=True, slots=True)
class SweepSettled:
    """The event that all trials of a sweep have ended; its tables are final until it is retried."""

    sweep: int


Event = Started | Progressed | Finished | Failed | AttemptStopped | CellSettled | SweepSettled

ORIGINS: Final = {
    "manifest": "data",
    "skipped": "skipped images",
    "content": "files",
    "weights": "weights",
    "code": "own code",
    "git_commit": "commits",
    "metricsweep": "versions of metricsweep",
}
"""What the runs of one number should have in common, by the key in a result's provenance."""


def origin_of(provenance: Mapping[str, Any]) -> str:
    """The data, weights and code of a training as JSON, as far as its provenance has them."""
    versions, skipped = (_mapping(provenance.get(key)) for key in ("versions", "skipped"))
    images = skipped.get("images")
    known = {
        **provenance,
        "metricsweep": versions.get("metricsweep"),
        "skipped": images if isinstance(images, int) else None,
    }
    held = {key: known[key] for key in ORIGINS if known.get(key)}
    return json.dumps(held, sort_keys=True, separators=(",", ":")) if held else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class TrialProvenance:
    """A trial of a sweep and all facts of its training."""

    result: TrialResult
    uid: str
    training: str  # UUID; several trials may share it
    fingerprint: str
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    provenance: Mapping[str, Any]  # of the result: versions, device, host, git commit, manifest
    best_step: int | None
    seconds: float | None
    score: float | None
    error: str | None
    run: str | None  # the id of its run in the tracker
    reason: str | None = None  # why it was pruned

    @property
    def commit(self) -> str | None:
        """The commit of the code that trained a trial, with `-dirty` if files had changed."""
        return _text(self.provenance.get("git_commit"))

    @property
    def data_hash(self) -> str | None:
        """The hash of the data set that the training read, else the hash in its recipe."""
        pins = self.recipe.get("pins") or {}
        return _text(self.provenance.get("manifest")) or _text(pins.get("manifest"))

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        part = self.recipe.get("dataset")
        return str(part.get("name", "") if isinstance(part, Mapping) else part or "")

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages that may change a trial's numbers."""
        found = _mapping(self.provenance.get("versions"))
        return {str(name): str(value) for name, value in found.items() if value}

    @property
    def device(self) -> str | None:
        """The device that trained a trial, such as `cpu (AMD EPYC)`."""
        kind, name = _text(self.provenance.get("device")), _text(self.provenance.get("device_name"))
        return f"{kind} ({name})" if kind and name else kind or name


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
