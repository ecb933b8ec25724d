"""Trials as clients see them: in lists and alone, with attempts, curves and logs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field

from orchestrator.views.operations import CollectedView
from orchestrator.views.pages import Annotation, Page, View
from orchestrator.views.states import TrialState

Against = Literal["step", "seconds"]
"""The axis of curves: the steps of the training, or the seconds that it has trained."""


class CurveLine(View):
    """The curve of a trial, or the mean curve of the runs of a candidate."""

    label: str
    sweep: int
    cell: int
    candidate: int
    trials: list[int]
    runs: int  # trials that have reported a value of the key
    running: bool = False  # whether more points may come
    points: list[tuple[float, float | None]]
    """At most as many as requested; the least and the greatest of each stretch that is left out stay."""
    band: list[tuple[float, float, float]] = Field(default_factory=list)
    """x, mean - deviation, mean + deviation (the sample's) where there are two runs or more."""


class CurveLines(View):
    """Curves of one key."""

    key: str
    x: Against
    smoothing: float  # of a debiased exponential moving average; 0 means none
    keys: list[str]  # all keys that have curves
    traces: list[CurveLine]
    left_out: int = 0  # lines beyond the most of one answer


class ClassScore(View):
    """How the test queries of one class are recognized by their nearest neighbours."""

    label: int
    name: str
    queries: int
    recall: float  # the share of its queries whose nearest neighbour is of this class
    precision: float | None = None
    """The share of the queries with a nearest neighbour of this class that are of it; null if there is no such query,
    or if the training did not keep the classes of neighbours."""
    f1: float | None = None  # the harmonic mean of both
    mistaken_for: str | None = None  # the other class that its queries find most often


class ClassScores(View):
    """The scores of each class, the lowest F1 first."""

    trial: int
    trials: list[int]  # whose queries are counted: the trial, or the trials of its candidate
    split: str  # `test`, or a further test set such as `test_lfw`
    checkpoint: str  # of the weights: `best` or `last`
    classes: list[ClassScore]


class Difference(View):
    """A value in which two recipes differ; null means that only the other recipe has it."""

    path: str
    own: Any = None
    other: Any = None


class Neighbour(View):
    """Another trial, why it is compared, and how its recipe differs."""

    trial: int
    why: str
    differences: list[Difference]


def differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """The differences of two recipes in the order of the own one, without `version` and `pins`."""
    mine, theirs = dict(leaves(own)), dict(leaves(other))
    paths = [*mine, *(path for path in theirs if path not in mine)]
    return [
        Difference(path=path, own=mine.get(path), other=theirs.get(path))
        for path in paths
        if path.partition(".")[0] not in {"version", "pins"} and mine.get(path) != theirs.get(path)
    ]


def leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a recipe by their paths, such as `optimizer.lr`."""
    for key, held in value.items():
        if isinstance(held, Mapping) and held:
            yield from leaves(held, f"{prefix}{key}.")
        else:
            yield prefix + key, held


class TrialSummary(View):
    """A trial in a list."""

    id: int
    uid: str
    sweep: int
    cell: int
    candidate: int
    repeat: int
    labels: dict[str, str]  # of all axes: compare, tune, repeat
    state: TrialState
    diverged: bool = False
    reused: bool = False
    step: int = 0
    total_steps: int = 0
    score: float | None = None
    error: str | None = None


class AttemptView(View):
    """An attempt at a trial's training."""

    number: int
    uid: str
    state: str  # running, finished, failed, lost, stopped
    slot: str | None = None
    requested: dict[str, Any] = Field(default_factory=dict)  # the resources of its slot, as in the spec
    host: str | None = None
    started: datetime
    ended: datetime | None = None
    reason: str | None = None
    resumed_from: str | None = None


class EvaluationView(View):
    """An evaluation of new metrics from kept weights; until it ends, the trial shows its present numbers."""

    training: str  # the training that the trial points to afterwards
    state: TrialState
    metrics: list[str]
    error: str | None = None  # why it failed; `retry` tries it again
    attempts: list[AttemptView] = Field(default_factory=list)


class EvaluatedFrom(View):
    """The training whose kept weights are evaluated instead of training."""

    training: str
    trial: int | None = None  # the first trial that points to it, if there is one
    sweep: int | None = None
    metrics: list[str]  # what is evaluated; all else comes from that training


class Replaced(View):
    """A training of older versions whose trials were planned again; its attempts and checkpoints are not used."""

    training: str
    step: int
    total_steps: int


class TrialView(TrialSummary):
    """A trial with its recipe, attempts, metrics, error and provenance."""

    sweep_name: str
    fingerprint: str
    training: str
    recipe: dict[str, Any]
    attempts: list[AttemptView]
    metrics: dict[str, float | None]  # result metrics by checkpoint/split/metric; null if the value is not a number
    best_step: int | None = None
    seconds: float | None = None
    provenance: dict[str, Any] = Field(default_factory=dict)
    outdated: list[str] = Field(default_factory=list)
    """Parts and metrics whose numbers have changed since it was planned: `metric 'map' (version 1, now 2)`."""
    replaced: list[Replaced] = Field(default_factory=list)  # unfinished trainings of older versions, newest first
    evaluation: EvaluationView | None = None
    evaluated_from: EvaluatedFrom | None = None
    reused_from: int | None = None  # the earlier trial whose training it shares
    reason: str | None = None  # why it was pruned
    collected: CollectedView | None = None  # when and why the weights of its training were removed
    trace: str | None = None
    mlflow_url: str | None = None
    annotation: Annotation = Field(default_factory=Annotation)


class Curve(View):
    """The points of one metric over training steps."""

    key: str
    points: list[tuple[int, float | None]]


class LogView(View):
    """Lines of a trial's log from an offset."""

    trial: int
    text: str
    offset: int = 0  # of `text`, in characters
    next_offset: int
    complete: bool


Listed = Literal["trials", "candidates"]
SORTED: Final = ("trial", "sweep", "cell", "candidate", "repeat", "state", "score", "seconds", "started", "ended")
"""Columns of every trial by which a listing may be sorted."""
FIXED: Final = (*SORTED, "reused", "diverged")  # columns of every trial
SEARCHED: Final = ("tag", "note", "error", "name")  # what else a filter may name; `name` is that of the sweep
MOST_POINTS: Final = 2_000  # rows, or groups of rows, in a plot


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a plot, each with its fields by name, and the number of all rows."""

    rows: list[dict[str, Any]]
    total: int


class ListedColumn(View):
    """A column by which trials may be filtered, sorted and drawn: an axis or a metric."""

    key: str  # an axis, such as `regularizer.eta`, or a metric, such as `best/test/map@r`
    name: str  # its short name, such as `eta` or `map@r`
    role: Literal["compare", "tune", "repeat", "metric"]
    numeric: bool
    labelled: bool


class ListedRow(View):
    """A trial, or a candidate with the means over its trials."""

    sweep: int
    sweep_name: str
    cell: int
    candidate: int
    trial: int  # of a candidate, its first trial
    repeat: int | None = None  # null for a candidate
    labels: dict[str, str]
    state: str  # of a candidate, the state of an active trial if there is one, else of one without success
    diverged: bool
    reused: bool
    trials: int = 1
    finished: int  # of its trials
    score: float | None
    seconds: float | None
    started: datetime | None
    ended: datetime | None
    values: dict[str, float | None]  # the requested metrics by the requested names; means for a candidate
    deviations: dict[str, float] = Field(default_factory=dict)
    """Of a candidate: of metrics, `score` and `seconds` with two values or more."""
    note: str = ""
    tags: list[str] = Field(default_factory=list)  # its own, its cell's and its sweep's


class RowGroup(View):
    """The rows of a list with the same label, with the means of their numbers."""

    label: str | None  # null: the rows that lack the column
    rows: int
    values: dict[str, float | None]  # means of `score` and the requested metrics, over the rows that have them
    deviations: dict[str, float] = Field(default_factory=dict)  # of two values or more


class Listing(Page[ListedRow]):
    """A page of a list of trials or candidates."""

    total: int | None = None  # the number of all rows, if requested
    metrics: list[str]  # the metrics that are shown
    groups: list[RowGroup] = Field(default_factory=list)  # of all rows, if requested
