"""Curves of several trainings beside each other, as clients see them."""

from typing import Literal

from pydantic import Field

from orchestrator.views.pages import View

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
