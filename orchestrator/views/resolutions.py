"""What is trained to decide the comparisons of a table: asked for, carried out in rounds, and what came of it."""

from collections import defaultdict, deque
from datetime import datetime
from typing import Literal

from pydantic import Field

from orchestrator.views.evidence import CellVerdictView
from orchestrator.views.pages import View


class ResolutionBudget(View):
    """What a resolution may take; without any limit it ends where all is decided, or nothing more can be."""

    hours: float | None = Field(default=None, gt=0, le=1_000_000)
    """Of training, on one slot."""
    seeds: int | None = Field(default=None, ge=1, le=48)
    """Further ones of any one cell."""
    within: float | None = Field(default=None, gt=0, le=1_000_000)
    """What is known to so much is decided too: half the width of its interval, in the unit of the column."""

    @property
    def said(self) -> str:
        """In words: `40 hours, 12 seeds a cell, known within 0.5`."""
        words = [] if self.hours is None else [f"{self.hours:g} hour{'s' * (self.hours != 1)}"]
        words += [] if self.seeds is None else [f"{self.seeds} seed{'s' * (self.seeds != 1)} a cell"]
        words += [] if self.within is None else [f"known within {self.within:g}"]
        return ", ".join(words) or "no limit"


class CellSeeds(View):
    """The seeds that a cell is given in a round."""

    cell: int
    labels: dict[str, str]
    seeds: list[int]


class LeftOut(View):
    """A comparison that is given no seeds."""

    cell: int
    labels: dict[str, str]
    metric: str
    why: str


class ResolutionRound(View):
    """What one round trains."""

    number: int
    """From 1."""
    cells: list[CellSeeds]
    trials: int
    hours: float | None
    """That it was expected to take on one slot; none where no training of such a cell was timed."""
    open: int
    """Comparisons that were not decided before it."""
    left_out: list[LeftOut] = Field(default_factory=list)
    request: int | None = None
    """The extension by which the sweep grew; none in a plan."""
    begun: datetime | None = None


class ResolutionView(View):
    """A resolution, or the plan of one."""

    sweep: int
    table: str
    budget: ResolutionBudget
    state: Literal["planned", "going", "ended"]
    """`planned`: nothing was asked for; this is what its first round would be."""
    said: str
    """What it does, or why it ended."""
    actor: str | None = None
    request: int | None = None
    begun: datetime | None = None
    ended: datetime | None = None
    before: list[CellVerdictView] = Field(default_factory=list)
    """The verdicts before its first round; empty while the sweep still trains what it had."""
    rounds: list[ResolutionRound] = Field(default_factory=list)
    after: list[CellVerdictView] = Field(default_factory=list)
    """The verdicts at its end."""
    trials: int = 0
    """That its rounds added."""
    hours_spent: float = 0.0
    """That these took so far."""
    saved: int = 0
    """Trials less than if every compared cell had been given as many seeds as the one that got most."""

    def title(self, metric: str) -> str:
        """What stands above the column of a result key."""
        return next((one.title for one in self.before if one.metric == metric), metric)

    def changed(self) -> list[tuple[CellVerdictView, CellVerdictView | None]]:
        """Each verdict before its first round with that at its end, of which there is none while it goes on.

        A table by two selections has two of a cell and metric, in the order of its columns.
        """
        after: defaultdict[tuple[int, str], deque[CellVerdictView]] = defaultdict(deque)
        for one in self.after:
            after[one.cell, one.metric].append(one)
        last = [(one, after[one.cell, one.metric]) for one in self.before]
        return [(one, found.popleft() if found else None) for one, found in last]
