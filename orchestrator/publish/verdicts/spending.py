"""How much of the error level a comparison may have spent after so many pairs."""

from dataclasses import dataclass
from typing import Final

LEAST: Final = 3
"""Pairs before which nothing is tested: with two, a t has one degree of freedom and no power."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A spending function of Lan & DeMets (Biometrika 70, 1983, 659-663) that never ends: of pairs, not of a maximum.

    In the place of their information fraction stands 1 - (first + 1) / (n + 1), which is 0 at the first look and 1
    only with infinitely many pairs, so that any number of seeds may be added.
    """

    first: int  # pairs at the first look
    share: float  # of the level, which is spent there

    def spent(self, pairs: int) -> float:
        """The share of the level that may be spent once there are so many pairs; 0 before the first look."""
        if pairs < self.first:
            return 0.0
        return 1.0 - (1.0 - self.share) * (self.first + 1) / (pairs + 1)


ANY: Final = Spending(LEAST, 0.25)
"""For looks at any time: a quarter at 3 pairs, half at 5, three quarters at 11."""


def planned(pairs: int, least: int = LEAST) -> Spending:
    """For a plan that is looked at when it has ended: four fifths there, the rest for seeds that are added later.

    `least` pairs are looked at first: of queries alone one seed tells enough.
    """
    return Spending(max(least, pairs), 0.8)
