"""What more pairs would do to a comparison that is not decided, if difference and spread are what they seem."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from orchestrator.publish.verdicts.boundary import EXACT, Boundary

SURE: Final = 0.8
"""How surely the pairs that are asked for decide: four times of five."""

_NORMAL: Final = NormalDist()
_POWER: Final = _NORMAL.inv_cdf(SURE)


@dataclass(frozen=True, slots=True)
class Prospect:
    """A comparison as it stands, with the boundaries that it has to cross."""

    mean: float
    std: float
    pairs: int
    differs: Boundary  # for its t against zero
    equals: Boundary  # for that against the margin, on either side
    holds: Boundary  # of the interval that holds for all comparisons at once
    margin: float | None = None
    floor: float = 0.0  # the variance that no pairs take away: that of test queries, where it counts

    def more(self) -> int | None:
        """Pairs until it is decided in four of five cases; none: beyond what is planned for."""
        return next((n - self.pairs for n in range(self.pairs + 1, EXACT + 1) if self._lead(n) >= _POWER), None)

    def chance(self, more: int) -> float:
        """How probably so many more pairs decide it."""
        return _NORMAL.cdf(self._lead(self.pairs + more))

    def narrow(self, half: float) -> int | None:
        """Pairs until its interval is no wider than `half` to either side; none: beyond what is planned for."""
        widths = ((n, self.holds.at(n) * self.error(n)) for n in range(self.pairs + 1, EXACT + 1))
        return next((n - self.pairs for n, width in widths if width <= half), None)

    def error(self, pairs: int) -> float:
        """The standard error of the mean difference after so many pairs."""
        alone = self.std / math.sqrt(pairs)
        return math.hypot(alone, math.sqrt(self.floor)) if self.floor else alone

    def _lead(self, pairs: int) -> float:
        """By how many standard errors it would be beyond the nearer of its boundaries."""
        root = 1 / self.error(pairs) if self.floor else math.sqrt(pairs) / self.std
        lead = abs(self.mean) * root - self.differs.at(pairs)
        if self.margin is None:
            return lead
        return max(lead, (self.margin - abs(self.mean)) * root - self.equals.at(pairs))
