"""Listings: trials, or candidates with the means of their trials, filtered, sorted and paged over any sweeps."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field

from orchestrator.views.pages import Page, View

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
