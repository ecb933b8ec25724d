"""Trials as clients see them: in lists, whole, with attempts, curves and logs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field

from orchestrator.views.operations import CollectedView
from orchestrator.views.pages import Page, Remark, View
from orchestrator.views.states import TrialState

Against = Literal["step", "seconds"]
"""What curves are drawn over: the training's steps, or the seconds that it has trained."""


class CurveLine(View):
    """One line: a trial's curve, or the mean over the runs of a candidate."""

    label: str
    sweep: int
    cell: int
    candidate: int
    trials: list[int]
    runs: int
    """How many of the trials have reported anything under the key."""
    running: bool = False
    """Whether more may come."""
    points: list[tuple[float, float | None]]
    """At most as many as were asked for; of each stretch that is left out the least and the greatest stay."""
    band: list[tuple[float, float, float]] = Field(default_factory=list)
    """x, mean - deviation, mean + deviation (the sample's) where two runs or more are; empty of a single run."""


class CurveLines(View):
    """What was asked for."""

    key: str
    x: Against
    smoothing: float
    """Of an exponential moving average that is corrected for its start (debiased); 0: none."""
    keys: list[str]
    """The keys that there are curves of, to choose from."""
    traces: list[CurveLine]
    left_out: int = 0
    """CurveLines beyond the most that one answer holds."""


class Difference(View):
    """A value that two recipes do not share; null: only the other one has it."""

    path: str
    own: Any = None
    other: Any = None


class Neighbour(View):
    """Another trial, why it is looked at, and what it was trained with instead."""

    trial: int
    why: str
    differences: list[Difference]


def differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """By path, in the order of the own recipe; what nobody chose (`version`, `pins`) is left out."""
    mine, theirs = dict(leaves(own)), dict(leaves(other))
    paths = [*mine, *(path for path in theirs if path not in mine)]
    return [
        Difference(path=path, own=mine.get(path), other=theirs.get(path))
        for path in paths
        if path.partition(".")[0] not in {"version", "pins"} and mine.get(path) != theirs.get(path)
    ]


def leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What a recipe holds by its path, such as `optimizer.lr`."""
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
    labels: dict[str, str]
    """The labels of all axes: compare, tune, repeat."""
    state: TrialState
    diverged: bool = False
    reused: bool = False
    step: int = 0
    total_steps: int = 0
    score: float | None = None
    error: str | None = None


class AttemptView(View):
    """One execution of a trial's training."""

    number: int
    uid: str
    state: str  # running, finished, failed, lost, stopped
    slot: str | None = None
    asked: dict[str, Any] = Field(default_factory=dict)
    """The resources that its slot holds, as the spec says them."""
    host: str | None = None
    started: datetime
    ended: datetime | None = None
    reason: str | None = None
    resumed_from: str | None = None


class EvaluationView(View):
    """Further metrics of a trial's kept weights that are on their way; until then it shows what it has."""

    training: str
    """The training that the trial moves to then."""
    state: TrialState
    metrics: list[str]
    error: str | None = None
    """Why it failed; `retry` tries it again."""
    attempts: list[AttemptView] = Field(default_factory=list)


class EvaluatedFrom(View):
    """The training whose kept weights were evaluated, or are to be, in place of training."""

    training: str
    trial: int | None = None
    """The first trial that shows it; none where its trials have moved on, or are deleted."""
    sweep: int | None = None
    metrics: list[str]
    """What was evaluated; all else is that training's."""


class Replaced(View):
    """A training of older versions whose trials were planned anew; its attempts and checkpoints are not used."""

    training: str
    step: int
    total_steps: int


class TrialView(TrialSummary):
    """One trial whole."""

    sweep_name: str
    fingerprint: str
    training: str
    recipe: dict[str, Any]
    attempts: list[AttemptView]
    metrics: dict[str, float | None]
    """Result metrics keyed checkpoint/split/metric; null where the value is not a number."""
    best_step: int | None = None
    seconds: float | None = None
    provenance: dict[str, Any] = Field(default_factory=dict)
    outdated: list[str] = Field(default_factory=list)
    """What has other numbers today than when it was planned, such as `metric 'map' (version 1, now 2)`."""
    replaced: list[Replaced] = Field(default_factory=list)
    """Trainings that it had under older versions and that did not finish, the last one first."""
    evaluation: EvaluationView | None = None
    evaluated_from: EvaluatedFrom | None = None
    reused_from: int | None = None
    """The trial whose training this one shares, when it was known already."""
    reason: str | None = None
    """Why it was pruned."""
    collected: CollectedView | None = None
    """When and why the weights of its training went; none: they did not."""
    trace: str | None = None
    mlflow_url: str | None = None
    remark: Remark = Field(default_factory=Remark)
    """What people said of it."""


class Curve(View):
    """The points of one metric over training steps."""

    key: str
    points: list[tuple[int, float | None]]


class LogView(View):
    """Lines of a trial's log from an offset on."""

    trial: int
    text: str
    offset: int = 0
    """Where `text` begins, in characters."""
    next_offset: int
    complete: bool


Listed = Literal["trials", "candidates"]
FIXED: Final = (
    "trial", "sweep", "cell", "candidate", "repeat", "state", "score", "seconds", "started", "ended", "reused",
    "diverged",
)  # fmt: skip
"""Columns that every trial has."""
SEARCHED: Final = ("tag", "note", "error", "name")
"""What else a filter may name: `name` is the sweep's."""
SORTED: Final = frozenset(FIXED) - {"reused", "diverged"}
"""Of the fixed columns those that a listing is sorted by."""


MOST_POINTS: Final = 2_000
"""Rows, or groups of them, that a plot draws."""


@dataclass(frozen=True, slots=True)
class Points:
    """What a plot draws, each point with its fields by name, and how many rows there are in all."""

    rows: list[dict[str, Any]]
    total: int


class ListedColumn(View):
    """A column that trials may be filtered by, sorted by and drawn over: an axis or a metric."""

    key: str
    """An axis, such as `regularizer.eta`, or a metric, such as `best/test/map@r`."""
    name: str
    """As short as it may be written: `eta`, `map@r`."""
    role: Literal["compare", "tune", "repeat", "metric"]
    numeric: bool
    labelled: bool


class ListedRow(View):
    """A trial, or a candidate with the means over its trials."""

    sweep: int
    sweep_name: str
    cell: int
    candidate: int
    trial: int
    """Of a candidate its first one."""
    repeat: int | None = None
    """None: of a candidate."""
    labels: dict[str, str]
    state: str
    """Of a candidate the state of its trials: one that is active if there is one, else one that is no success."""
    diverged: bool
    reused: bool
    trials: int = 1
    finished: int
    """Of these."""
    score: float | None
    seconds: float | None
    started: datetime | None
    ended: datetime | None
    values: dict[str, float | None]
    """The metrics that were asked for, by the names under which they were; of a candidate the means."""
    deviations: dict[str, float] = Field(default_factory=dict)
    """Of a candidate: of what has two values or more, `score` and `seconds` among them."""
    note: str = ""
    tags: list[str] = Field(default_factory=list)
    """Its own, its cell's and its sweep's."""


class Listing(Page[ListedRow]):
    """A page of it."""

    total: int | None = None
    """How many rows there are in all, where that was asked for."""
    metrics: list[str]
    """The metrics that are shown."""
