"""How a table differs from another, or from itself at another time: which cells changed, by what, and by how much."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel

CauseKind = Literal["selected candidate", "seeds", "recipe", "data", "code", "versions", "retrained"]
Change = Literal["changed", "appeared", "gone", "diverged", "failed", "pending"]
Loudness = Literal["more than noise", "within noise", "cannot tell"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What of a training may explain another number."""

    recipe: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    data_hash: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


class DriftCause(BaseModel):
    """One thing that is not as it was."""

    kind: CauseKind
    said: str
    """What it was and what it is."""


class DriftNumber(BaseModel):
    """A number of a cell; shares are fractions."""

    text: str
    """As its table prints it."""
    mean: float | None
    std: float | None
    n: int
    sweep: int
    cell: int


class CellDrift(BaseModel):
    """One number that is not as it was."""

    labels: dict[str, str]
    metric: str
    title: str
    change: Change
    """`gone`: there is no such cell any more; the last three: there is, and this is why it has no number now."""
    before: DriftNumber | None
    after: DriftNumber | None
    difference: float | None
    """After - before."""
    shown: str
    """The same in the unit of the column."""
    causes: list[DriftCause]
    loudness: Loudness
    why: str
    """By which test, or why there is none."""
    p: float | None
    """Two-sided, corrected by Holm's method over all numbers that were tested."""


class DriftView(BaseModel):
    """The difference of two tables."""

    before: str
    after: str
    table: str
    unchanged: int
    """Numbers that are as they were, run by run."""
    said: str
    cells: list[CellDrift]
