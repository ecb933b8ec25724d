"""Sweeps as clients see them: in a list, whole, as a grid, and with their requests and remarks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from orchestrator.cost.estimate import Cost
from orchestrator.views.accounts import caller
from orchestrator.views.pages import Remark, View, time_left
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState

VIEW: Final = "metricsweep"
"""The name of the view of its runs that an experiment keeps for us."""


@dataclass(frozen=True, slots=True)
class Links:
    """Builds addresses as MLflow 3's interface routes them; none where no server is known."""

    server: str

    def to(self, experiment: str | None, run: str | None = None) -> str | None:
        """The page of an experiment, or of a run in it."""
        if not self.server or experiment is None:
            return None
        if self.server.startswith("/") and not caller().opens_mlflow:  # our gate would refuse it
            return None
        page = f"{self.server.rstrip('/')}/#/experiments/{experiment}/runs"
        return f"{page}/{run}" if run else page

    def to_view(self, experiment: str | None) -> str | None:
        """The classic page of an experiment's runs under the view that it keeps for us."""
        page = self.to(experiment)
        return page and f"{page}?workflowType=machine_learning&viewStateShareKey={VIEW}"


REVIVING: Final = frozenset({"retry", "extend", "resolve", "renew"})
"""Kinds of requests after which a sweep that has ended may go on."""


class RequestView(BaseModel):
    """What somebody asked of a sweep, and what became of it."""

    id: int
    kind: str
    """cancel, retry, pause, resume, priority, extend, delete, collect, mirror, resolve or halt (of a resolution);
    renew: of itself, since numbers changed."""
    sweep: int
    trial: int | None = None
    cell: int | None = None
    actor: str | None = None
    created: datetime
    state: Literal["waiting", "done", "refused"]
    """`waiting` for the conductor, `done`, or `refused` by it."""
    applied: datetime | None = None
    """When the conductor carried it out or refused it."""
    outcome: str | None = None
    """What it changed, or why it was refused."""


Heat = Literal["metric", "state", "none"]
"""By what a page colours a table: its numbers, the states of its trials, or not at all."""


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
    evaluations: int = 0
    """Finished trials of which further metrics are still to be evaluated; they show what they have meanwhile."""
    evaluations_failed: int = 0
    """Finished trials of which they could not be; `retry` tries it again."""

    @property
    def total(self) -> int:
        """All trials of the sweep."""
        return self.waiting + self.running + self.ended

    @property
    def ended(self) -> int:
        """Trials that will not change any more unless they are retried."""
        return self.done + self.failed + self.cancelled

    @property
    def done(self) -> int:
        """Trials that came to their end with what they are for: what failed or was cancelled never did."""
        return self.finished + self.pruned


class StepCount(View):
    """How much of a sweep's work is done: steps of its trials, whose lengths differ; `unit` says if none is known."""

    unit: Literal["steps", "trials"] = "steps"
    total: int = 0
    """Of all planned trials; of one that was pruned only what it trained. An unknown length counts as the mean."""
    done: int = 0
    """Of the trials that finished or were pruned, and of those that run; what failed or was cancelled is not done."""
    percent: int = 0
    """Hundredths that are done, rounded down: 100 means that every trial came to its end with a result."""
    shares: dict[str, int] = Field(default_factory=dict)
    """By kind: finished, diverged, failed, cancelled, pruned, running (what these have trained), waiting (the rest)."""

    @property
    def said(self) -> str:
        """In words: `63 % of 24,000 steps`."""
        return f"{self.percent} % of {self.total:,} {self.unit.removesuffix('s') if self.total == 1 else self.unit}"


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
    steps: StepCount = Field(default_factory=StepCount)
    eta_seconds: float | None = None
    """Seconds until the last trial, from the steps left and how long steps took; none until some were timed."""
    eta_low_seconds: float | None = None
    """Four times of five it takes at least so long,"""
    eta_high_seconds: float | None = None
    """and at most so long."""
    tables: list[str] = Field(default_factory=list)
    figures: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    """Its own, by which it is found; those of its cells and trials stand with these."""
    actor: str | None = None
    project: str = "main"
    priority: int = 0
    error: str | None = None
    notice: str | None = None
    """Why trials wait, a line for each slot that no node can hold and each data set that no machine has."""

    @property
    def left(self) -> str:
        """The time until the last trial in words; empty where it is not known."""
        return time_left(self.eta_seconds, self.eta_low_seconds, self.eta_high_seconds)


class PartUse(View):
    """A sweep that names a part."""

    id: int
    name: str
    state: SweepState
    created: datetime


class TrialProblem(View):
    """A failed or diverged trial, and the way to its log."""

    trial: int
    labels: dict[str, str]
    state: TrialState
    message: str
    log: str  # /v1/trials/<id>/logs


# Not models: a page has thousands of these.
@dataclass(slots=True)
class GridTrial:
    """One square of a sweep's grid."""

    trial: int
    repeat: int
    state: TrialState
    diverged: bool = False


@dataclass(slots=True)
class GridCandidate:
    """A candidate's row of squares."""

    labels: dict[str, str]
    trials: list[GridTrial]
    selected: bool = False
    score: float | None = None


@dataclass(slots=True)
class GridCell:
    """A cell of the grid with its candidates."""

    index: int
    labels: dict[str, str]
    candidates: list[GridCandidate]
    mlflow_url: str | None = None


class Reuse(View):
    """What a sweep takes from trainings that had finished before."""

    trainings: int
    of: int
    """The different trainings of the sweep."""
    first: datetime
    """When the oldest of them was trained,"""
    last: datetime
    """and the newest."""

    @property
    def said(self) -> str:
        """In words, with the way to train them again."""
        days = sorted({f"{self.first:%Y-%m-%d}", f"{self.last:%Y-%m-%d}"})
        when = f"on {days[0]}" if len(days) == 1 else f"between {days[0]} and {days[1]}"
        return f"{self.trainings:,} of {self.of:,} trainings are reused, trained {when}; `fresh: true` trains again"


class SweepView(SweepSummary):
    """One sweep whole."""

    reuse: Reuse | None = None
    """What it takes from earlier trainings; none where it takes nothing."""

    spec: dict[str, Any]
    text: str  # as it was posted
    requests: list[RequestView] = Field(default_factory=list)
    """The latest ones, newest first."""
    problems: list[TrialProblem] = Field(default_factory=list)
    mlflow_url: str | None = None
    remark: Remark = Field(default_factory=Remark)
    """What people said of it."""

    @property
    def description(self) -> str:
        """The line for people that its spec has."""
        return str(self.spec.get("description") or "")

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and no request waits that may start it again."""
        reviving = any(one.state == "waiting" and one.kind in REVIVING for one in self.requests)
        return self.state in SWEEP_ENDED and not reviving


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
    evaluated: int = 0
    """Trials that are evaluated of the weights that a training has kept which differs by `metrics` alone."""
    exact: bool = True
    """False where a search proposes candidates: then all counts but that of the cells are at most so many."""
    cost: Cost
    reuse: Reuse | None = None
    """What would be reused, by the data as it was last looked at; the sweep itself says what was."""
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials would wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""

    @property
    def said(self) -> list[str]:
        """In words: how many of what there would be, what would come of them, and what of it was trained before."""
        most = "" if self.exact else "at most "
        counts = f"{self.cells} cells, {most}{self.candidates} candidates, {most}{self.trials} trials"
        trained = self._evaluated if self.evaluated else f"{most}{self._trained}"
        return [f"{self.name}: {counts}", trained, *([self.reuse.said] if self.reuse else [])]

    @property
    def _evaluated(self) -> str:
        counts = [f"{self.evaluated} evaluated from kept weights"]
        trained = self.trials - self.evaluated - self.cached
        counts += [f"{trained} trained"] if trained else []
        counts += [f"{self.cached} trained already"] if self.cached else []
        return f"{self.trials} trials: {', '.join(counts)}"

    @property
    def _trained(self) -> str:
        reused = self.trainings - self.cost.trainings
        of_trials = f" for {self.cached} trials" if self.cached > reused else ""
        counts = f"{self.cost.trainings} to be trained, {reused} trained already{of_trials}"
        return f"{self.trainings} different trainings: {counts}"


class Submitted(View):
    """The answer to a submit; `created` is false when the idempotency key was known."""

    id: int
    uid: str
    created: bool
    warnings: list[str] = Field(default_factory=list)
    """Slots that no node which was ever seen can hold and data that no machine has: their trials wait."""
    notes: list[str] = Field(default_factory=list)
    """What the subset that `only` and `without` take can no longer show."""
    reuse: Reuse | None = None
    """What is reused, by the data as it was last looked at; none of more than 2,000 trials."""
    cost: Cost | None = None
    """What is still to be trained; none of more than 2,000 trials, of which a preview tells."""
