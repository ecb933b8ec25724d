"""What a budget would decide of a table before anything of it is trained, as JSON and for the command line."""

from pydantic import Field

from orchestrator.views.pages import View
from orchestrator.views.resolutions import ResolutionBudget


class SupposedTruth(View):
    """What differences are supposed to be, where no history says it; both in the unit of the column."""

    spread: float | None = Field(default=None, gt=0, le=1_000_000)
    """The standard deviation of a paired difference: of what one seed says."""
    effect: float | None = Field(default=None, ge=0, le=1_000_000)
    """The standard deviation of the true differences, which are drawn around 0."""
    like: int | None = Field(default=None, ge=1)
    """The sweep whose differences and spreads are taken, cell by cell; of others, what its cells have together."""


class ForeseenComparison(View):
    """One comparison, over all plays."""

    cell: int
    labels: dict[str, str]
    baseline: int
    metric: str
    supposed: str
    """What it was supposed to be."""
    decided: float
    """The share of plays in which it is decided."""
    seeds: float
    """Of its cell, at the end, on average."""


class DeviceForesight(View):
    """The hours of all of it on one device, one after the other, by what was measured of such trainings."""

    device: str
    plan: float
    low: float
    """Of plan and rounds: nine plays of ten take more,"""
    middle: float
    high: float
    """and nine of ten less."""


class ForesightView(View):
    """What a plan and a budget would decide, if cells are what they are supposed to be."""

    table: str
    plays: int
    budget: ResolutionBudget
    said: str
    comparisons: list[ForeseenComparison]
    decided: float
    """How many of them are, on average."""
    plan_trials: int
    trials: float
    """With the rounds, on average."""
    low_trials: int
    high_trials: int
    """Between which eight plays of ten lie."""
    hours: list[DeviceForesight]
    """By device; empty where too few such trainings were measured."""
