"""Axes: the alternatives of a path of the recipe, and the cells in which they apply."""

from typing import Final, Literal

from pydantic import Field

from orchestrator.spec.patch import Patch, PatchSources, Source
from orchestrator.spec.when import When
from workers.contract import Frozen

Role = Literal["compare", "tune", "repeat"]
ROLES: Final[tuple[Role, ...]] = ("compare", "tune", "repeat")


class Choice(Frozen):
    """One alternative of an axis."""

    label: str
    patch: Patch
    source: Source = ""
    sources: PatchSources = Field(default_factory=dict)  # the place of each path of the patch


class Span(Frozen):
    """A range of numbers that an adaptive search draws from, both ends included."""

    low: float
    high: float
    log: bool = False
    step: float | None = Field(default=None, gt=0)
    whole: bool = False
    """Whether only whole numbers are drawn: so where both ends were posted as such."""


class Group(Frozen):
    """Alternatives of an axis, and the cells in which they apply."""

    when: When = Field(default_factory=dict)
    choices: list[Choice]
    """Of a span its two ends, which is what the plan checks; empty where `only` and `without` took all."""
    span: Span | None = None
    source: Source = ""


Axis = list[Group]


def labels_of(axis: Axis) -> list[str]:
    """The labels of an axis in order."""
    return [choice.label for group in axis for choice in group.choices]
