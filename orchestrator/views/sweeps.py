"""Sweeps as clients see them: in lists and alone, as a grid, and with their requests and annotations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from orchestrator.cost.estimate import Cost
from orchestrator.views.accounts import caller
from orchestrator.views.pages import Annotation, View, time_left
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState

VIEW: Final = "metricsweep"  # the name of our view of the runs of an experiment in MLflow


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of a sweep's pages in MLflow 3, `None` without a server."""

    server: str

    def to(self, experiment: str | None, run: str | None = None) -> str | None:
        """The address of MLflow's page of an experiment, or of a run in it."""
        if not self.server or experiment is None:
            return None
        if self.server.startswith("/") and not caller().opens_mlflow:  # our server would refuse it
            return None
        page = f"{self.server.rstrip('/')}/#/experiments/{experiment}/runs"
        return f"{page}/{run}" if run else page

    def to_view(self, experiment: str | None) -> str | None:
        """The address of MLflow's list of an experiment's runs, in our view."""
        page = self.to(experiment)
        return page and f"{page}?workflowType=machine_learning&viewStateShareKey={VIEW}"


REVIVING: Final = frozenset({"retry", "extend", "resolve", "renew"})
"""Kinds of requests after which an ended sweep may continue."""


class RequestView(BaseModel):
    """A request to change a sweep, with its state and outcome."""

    id: int
    kind: str
    """cancel, retry, pause, resume, priority, extend, delete, collect, mirror, resolve, halt (of a resolution) or renew
    (by the service, since numbers have changed)."""
    sweep: int
    trial: int | None = None
    cell: int | None = None
    actor: str | None = None
    created: datetime
    state: Literal["waiting", "done", "refused"]  # `waiting` for the conductor, `done`, or `refused` by it
    applied: datetime | None = None  # when the conductor applied or refused it
    outcome: str | None = None  # what it changed, or why it was refused


Heat = Literal["metric", "state", "none"]
"""What colours a table on a page: its numbers, the states of its trials, or nothing."""


class Counts(View):
    """The number of a sweep's trials by state; `diverged` and `reused` are part of `finished`."""

    waiting: int = 0
    running: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    pruned: int = 0
    diverged: int = 0
    reused: int = 0
    evaluations: int = 0  # finished trials with further metrics that are still to be evaluated
    evaluations_failed: int = 0  # finished trials whose evaluation failed; `retry` tries it again

    @property
    def total(self) -> int:
        """The number of all trials of the sweep."""
        return self.waiting + self.running + self.ended

    @property
    def ended(self) -> int:
        """The number of trials that do not change any more unless they are retried."""
        return self.done + self.failed + self.cancelled

    @property
    def done(self) -> int:
        """The number of trials that ended with a result, or were pruned."""
        return self.finished + self.pruned


class StepCount(View):
    """How many training steps of a sweep are done, or how many trials if no trial's length is known."""

    unit: Literal["steps", "trials"] = "steps"
    total: int = 0
    """Of all planned trials. A pruned trial counts with the steps that it trained, an unknown length as the mean."""
    done: int = 0  # of finished, pruned and running trials; failed and cancelled trials do not count
    percent: int = 0  # rounded down: 100 means that every trial ended with a result or was pruned
    shares: dict[str, int] = Field(default_factory=dict)
    """By kind: finished, diverged, failed, cancelled, pruned, running (steps trained so far), waiting (the rest)."""

    @property
    def summary(self) -> str:
        """The done steps in words, such as `63 % of 24,000 steps`."""
        return f"{self.percent} % of {self.total:,} {self.unit.removesuffix('s') if self.total == 1 else self.unit}"


class BestCell(View):
    """The best cell of a sweep by the first column of its first table, among the cells that have ended."""

    cell: int
    labels: dict[str, str]
    metric: str  # the title of the column: `R@1`
    key: str  # the result key: `best/test/recall@1`
    text: str  # as a table prints it: `95.70 ± 0.86`
    mean: float
    std: float | None
    n: int


class SweepHead(View):
    """The identity, state and times of a sweep."""

    id: int
    uid: str
    name: str
    state: SweepState
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None


class SweepSummary(SweepHead):
    """A sweep in a list."""

    counts: Counts
    total: int  # planned trials, known before the conductor has written their rows
    steps: StepCount = Field(default_factory=StepCount)
    eta_seconds: float | None = None  # until the last trial ends, from the speed so far; null until it is known
    eta_low_seconds: float | None = None  # the lower end of an 80 % interval
    eta_high_seconds: float | None = None  # the upper end
    tables: list[str] = Field(default_factory=list)
    figures: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)  # its own, without those of its cells and trials
    actor: str | None = None
    project: str = "main"
    priority: int = 0
    error: str | None = None
    notice: str | None = None
    """Why trials wait: a line for each slot that no node can hold, and for each data set that no machine has."""
    best: BestCell | None = None
    differences: list[str] = Field(default_factory=list)
    """How its spec differs from that of the sweep of the same name before it: `iterations: 600, 300 in #6`."""

    @property
    def left(self) -> str:
        """The time until the last trial ends, in words; empty if it is not known."""
        return time_left(self.eta_seconds, self.eta_low_seconds, self.eta_high_seconds)


class PartUse(View):
    """A sweep whose spec names a part."""

    id: int
    name: str
    state: SweepState
    created: datetime


class TrialProblem(View):
    """A failed or diverged trial, and the address of its log."""

    trial: int
    labels: dict[str, str]
    state: TrialState
    message: str
    log: str  # /v1/trials/<id>/logs


# Not models: a page has thousands of these.
@dataclass(slots=True)
class GridTrial:
    """A trial in the grid of a sweep."""

    trial: int
    repeat: int
    state: TrialState
    diverged: bool = False


@dataclass(slots=True)
class GridCandidate:
    """A candidate in the grid of a sweep, with its trials."""

    labels: dict[str, str]
    trials: list[GridTrial]
    selected: bool = False
    score: float | None = None


@dataclass(slots=True)
class GridCell:
    """A cell in the grid of a sweep, with its candidates."""

    index: int
    labels: dict[str, str]
    candidates: list[GridCandidate]
    mlflow_url: str | None = None


class Reuse(View):
    """The earlier trainings that a sweep reuses."""

    trainings: int
    of: int  # the different trainings of the sweep
    first: datetime  # when the oldest of them was trained
    last: datetime  # when the newest was trained

    @property
    def summary(self) -> str:
        """The reused trainings in words, with the option that trains them again."""
        days = sorted({f"{self.first:%Y-%m-%d}", f"{self.last:%Y-%m-%d}"})
        when = f"on {days[0]}" if len(days) == 1 else f"between {days[0]} and {days[1]}"
        return f"{self.trainings:,} of {self.of:,} trainings are reused, trained {when}; `fresh: true` trains again"


class SweepView(SweepSummary):
    """A sweep with its state, counts, spec and problems."""

    reuse: Reuse | None = None
    spec: dict[str, Any]
    text: str  # as it was posted
    requests: list[RequestView] = Field(default_factory=list)  # the latest, newest first
    problems: list[TrialProblem] = Field(default_factory=list)
    mlflow_url: str | None = None
    annotation: Annotation = Field(default_factory=Annotation)

    @property
    def description(self) -> str:
        """The description in the sweep's spec."""
        return str(self.spec.get("description") or "")

    @property
    def is_over(self) -> bool:
        """Whether the sweep has ended, and no waiting request may start it again."""
        reviving = any(request.state == "waiting" and request.kind in REVIVING for request in self.requests)
        return self.state in SWEEP_ENDED and not reviving


@dataclass(frozen=True, slots=True)
class AxisGroup:
    """Alternatives of an axis that apply together: of the whole axis, or of one group with its own `when`."""

    role: str
    axis: str
    at: int  # the position of the group in the axis

    @property
    def field(self) -> str:
        """Its name in a form."""
        return f"{self.role}.{self.axis}[{self.at}]"


def axis_groups(spec: Mapping[str, Any]) -> dict[AxisGroup, Mapping[str, Any]]:
    """The groups of alternatives of a stored spec, each with `when` and `choices`; a search has none."""
    if (spec.get("search") or {}).get("name", "grid") != "grid":
        return {}
    return {
        AxisGroup(role, axis, at): group
        for role in ("compare", "tune", "repeat")
        for axis, groups in (spec.get(role) or {}).items()
        for at, group in enumerate(groups)
    }


class Preview(View):
    """The sweep that a spec would become, which is not stored."""

    name: str
    cells: int
    candidates: int
    trials: int
    planned: int = 0  # trials that the sweep has already, if it is extended; what follows is of the others
    trainings: int  # different recipes among the trials
    cached: int  # trials whose training has finished already
    evaluated: int = 0  # trials that are evaluated from the kept weights of a training with other `metrics`
    exact: bool = True  # False for a search: then all counts except that of cells are upper limits
    cost: Cost
    reuse: Reuse | None = None  # by the last inspection of the data
    warnings: list[str] = Field(default_factory=list)
    """Slots that no known node can hold, and data that no machine has: their trials would wait."""
    notes: list[str] = Field(default_factory=list)  # what is not shown because of `only` and `without`

    @property
    def summary(self) -> list[str]:
        """The preview in words: the counts, what would be trained or evaluated, and what is reused."""
        most = "" if self.exact else "at most "
        counts = f"{self.cells} cells, {most}{self.candidates} candidates, {most}{self.trials} trials"
        trained = self._evaluated if self.evaluated else f"{most}{self._trained}"
        return [f"{self.name}: {counts}", trained, *([self.reuse.summary] if self.reuse else [])]

    @property
    def _evaluated(self) -> str:
        counts = [f"{self.evaluated} evaluated from kept weights"]
        trials = self.trials - self.planned
        trained = trials - self.evaluated - self.cached
        counts += [f"{trained} trained"] if trained else []
        counts += [f"{self.cached} trained already"] if self.cached else []
        return f"{trials} trials: {', '.join(counts)}"

    @property
    def _trained(self) -> str:
        reused = self.trainings - self.cost.trainings
        of_trials = f" for {self.cached} trials" if self.cached > reused else ""
        counts = f"{self.cost.trainings} to be trained, {reused} trained already{of_trials}"
        return f"{self.trainings} different trainings: {counts}"


class Submitted(View):
    """The answer to a submit; `created` is false if the idempotency key was known."""

    id: int
    uid: str
    created: bool
    warnings: list[str] = Field(default_factory=list)
    """Slots that no known node can hold, and data that no machine has: their trials wait."""
    notes: list[str] = Field(default_factory=list)  # what is not shown because of `only` and `without`
    reuse: Reuse | None = None  # by the last inspection of the data; null for more than 2,000 trials
    cost: Cost | None = None  # of what is still to be trained; null for more than 2,000 trials
