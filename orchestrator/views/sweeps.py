"""Sweeps as clients see them: in a list, whole, and as a grid."""

from datetime import datetime
from typing import Any

from pydantic import Field

from orchestrator.views.lifecycle import SweepState, TrialState
from orchestrator.views.pages import View
from orchestrator.views.requests import RequestView


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
