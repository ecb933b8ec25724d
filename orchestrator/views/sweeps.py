"""Sweeps as clients see them: in a list, whole, and as a grid."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from orchestrator.views.durations import time_left
from orchestrator.views.lifecycle import SWEEP_ENDED, SweepState, TrialState
from orchestrator.views.pages import View
from orchestrator.views.remarks import Remark
from orchestrator.views.requests import REVIVING, RequestView

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
