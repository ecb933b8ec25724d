"""Early stopping within a cell: its rules and their options."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from workers.contract import Frozen

Count = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[int, Field(ge=2, le=100)]

LEAST_RACED: Final = 3
"""Repeats: with two, a t has one degree of freedom and no power."""


class Median(Frozen):
    """Stops what at its best is worse than the median of the finished peers at the same evaluation."""

    name: Literal["median"]
    startup: Count = 5
    """Peers that must have finished before anything is stopped."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Evaluations of a training before the first decision on it."""


class Asha(Frozen):
    """Asynchronous successive halving: of those that reach a rung only the best go on."""

    name: Literal["asha"]
    min_evaluations: Count = 1
    """The first rung; each further one is `reduction` times as high."""
    reduction: Factor = 4
    """One in so many goes on."""


class Hyperband(Frozen):
    """Successive halving in brackets, of which some judge later than others."""

    name: Literal["hyperband"]
    min_evaluations: Count = 1
    """The first rung of the first bracket."""
    max_evaluations: Count | None = None
    """The last rung; none: as many as a training has."""
    reduction: Factor = 3
    """One in so many goes on."""

    @model_validator(mode="after")
    def _room(self) -> "Hyperband":
        if self.max_evaluations is not None and self.max_evaluations < self.min_evaluations:
            low, high = self.min_evaluations, self.max_evaluations
            raise ValueError(f"max_evaluations is {high}; expected at least min_evaluations, which is {low}")
        return self


class Wilcoxon(Frozen):
    """Starts no further repeat of what by a signed-rank test over the repeats is worse than the best candidate."""

    name: Literal["wilcoxon"]
    p: float = Field(default=0.1, gt=0, lt=1)
    """What the p-value must be below."""
    startup: Count = 2
    """Repeats that both must have finished before anything is stopped."""


class Race(Frozen):
    """Trains the candidates of a cell repeat by repeat, and no further repeat of what another candidate has beaten."""

    name: Literal["race"]
    level: float = Field(default=0.05, gt=0, le=0.5)
    """How probably the candidate of a cell whose true mean is best may be stopped, over all repeats."""
    first: int = Field(default=3, ge=LEAST_RACED, le=100)
    """Repeats that all candidates are given before anything is stopped."""


Prune = Annotated[Median | Hyperband | Asha | Wilcoxon | Race, Field(discriminator="name")]

PRUNES: Final[Mapping[str, type[Median | Hyperband | Asha | Wilcoxon | Race]]] = {
    "median": Median,
    "hyperband": Hyperband,
    "asha": Asha,
    "wilcoxon": Wilcoxon,
    "race": Race,
}
