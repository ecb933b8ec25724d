"""What the outside sees, as JSON and as pages: sweeps, trials, curves, logs, tables."""

from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.cost.view import Cost
from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.requests import RequestView

Item = TypeVar("Item")


class View(BaseModel):
    """Any of these; pydantic builds what checks one when it is first used, for which the commands do not wait."""

    model_config = ConfigDict(defer_build=True)


class Page(View, Generic[Item]):
    """Some items and, when there are more, the cursor that asks for the next ones."""

    items: list[Item]
    next_cursor: str | None = None


class Counts(View):
    """A sweep's trials by state; `diverged` and `reused` are part of `finished`."""

    waiting: int = 0
    running: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    pruned: int = 0
    diverged: int = 0
    reused: int = 0

    @property
    def total(self) -> int:
        """All trials of the sweep."""
        return self.waiting + self.running + self.ended

    @property
    def ended(self) -> int:
        """Trials that will not change any more unless they are retried."""
        return self.done + self.cancelled

    @property
    def done(self) -> int:
        """Trials that came to their own end: what was cancelled never did."""
        return self.finished + self.failed + self.pruned


class SweepSummary(View):
    """A sweep in a list."""

    id: int
    uid: str
    name: str
    state: SweepState
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    counts: Counts
    total: int
    """Trials planned; known before the conductor has written their rows."""
    eta_seconds: float | None = None
    """Seconds until the last trial, from the mean length of those that ended; none while none has."""
    tables: list[str] = Field(default_factory=list)
    figures: list[str] = Field(default_factory=list)
    actor: str | None = None
    priority: int = 0
    error: str | None = None
    notice: str | None = None
    """Why trials wait, a line for each slot that no node can hold and each data set that no machine has."""


class TrialProblem(View):
    """A failed or diverged trial, and the way to its log."""

    trial: int
    labels: dict[str, str]
    state: TrialState
    message: str
    log: str  # /v1/trials/<id>/logs


class GridTrial(View):
    """One square of a sweep's grid."""

    trial: int
    repeat: int
    state: TrialState
    diverged: bool = False


class GridCandidate(View):
    """A candidate's row of squares."""

    labels: dict[str, str]
    selected: bool = False
    score: float | None = None
    trials: list[GridTrial]


class GridCell(View):
    """A cell of the grid with its candidates."""

    index: int
    labels: dict[str, str]
    mlflow_url: str | None = None
    candidates: list[GridCandidate]


class SweepView(SweepSummary):
    """One sweep whole."""

    spec: dict[str, Any]
    text: str  # as it was posted
    requests: list[RequestView] = Field(default_factory=list)
    """The latest ones, newest first."""
    problems: list[TrialProblem] = Field(default_factory=list)
    mlflow_url: str | None = None

    @property
    def description(self) -> str:
        """The line for people that its spec has."""
        return str(self.spec.get("description") or "")


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
    reused_from: int | None = None
    """The trial whose training this one shares, when it was known already."""
    reason: str | None = None
    """Why it was pruned."""
    trace: str | None = None
    mlflow_url: str | None = None


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


class Preview(View):
    """What a spec would become, without storing it."""

    name: str
    cells: int
    candidates: int
    trials: int
    trainings: int
    """Different recipes among the trials."""
    cached: int
    """Trials whose training has finished already."""
    exact: bool = True
    """False where a search proposes candidates: then all counts but that of the cells are at most so many."""
    cost: Cost
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials would wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""


class Submitted(View):
    """The answer to a submit; `created` is false when the idempotency key was known."""

    id: int
    uid: str
    created: bool
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""
    cost: Cost | None = None
    """What is still to be trained; none of more than 2,000 trials, of which a preview tells."""


class Rendered(View):
    """A table or figure as a file."""

    content: bytes
    media_type: str
    filename: str


class FigureView(View):
    """A figure of a sweep in a list."""

    name: str
    kind: str
    title: str
    formats: list[str]
    url: str  # /v1/sweeps/<id>/figures/<name>


class FigureFile(View):
    """A file that a trial's training kept for figures."""

    name: str
    media_type: str
    size: int  # bytes
    url: str  # /v1/trials/<id>/figures/<name>


class Check(View):
    """Whether one thing that the service needs is there."""

    name: str
    ok: bool
    detail: str


class Readiness(View):
    """Whether the service can do its work."""

    ok: bool
    checks: list[Check]
