"""From which t on a difference counts, when one may have looked after every pair before: exact for few pairs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, pi
from statistics import NormalDist
from threading import Lock
from typing import Any, Final

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


EXACT: Final = 48
"""Pairs up to which the joint distribution is followed; beyond, what is newly spent is a test of its own."""

_CELLS: Final = 241  # of the angle between the two boundaries
_NODES: Final = 4097  # of the tabulated distribution of a step


class Boundary:
    """The critical values of |t| of a paired t-test that is repeated after every pair from the first look on.

    Lan & DeMets (Biometrika 70, 1983, 659-663): c(n) is such that P(|t(k)| < c(k) for all k < n, |t(n)| >= c(n)) is
    what is newly spent at n. Normal theory spends too much on few pairs, so that it is computed from the exact joint
    distribution of the t (Jennison & Turnbull, Biometrika 78, 1991, 133-141; Rom & McTague, J Biopharm Stat 30, 2020,
    752-764), here by a recursion in one number. Under the null the direction of (d(1)..d(n)) is uniform on a sphere,
    whatever the variance. With sin a(n) = sum(d) / sqrt(n sum(d^2)) it is t(n) = sqrt(n - 1) tan a(n), and

        sqrt(n + 1) sin a(n + 1) = sqrt(n) sin a(n) cos f + sin f,      sqrt(n) tan f ~ t with n degrees of freedom

    where tan f = d(n + 1) / sqrt(sum(d(1..n)^2)) does not depend on a(1..n), as length and direction are independent.
    Fewer looks than one after every pair, whenever and for whatever reason, cross less often.
    """

    def __init__(self, level: float, spending: Spending) -> None:
        self._level, self._spending = level, spending
        self._critical: list[float] = []
        self._state: tuple[Any, Any] | None = None  # angles and their masses inside the boundary
        self._lock = Lock()

    def at(self, pairs: int) -> float:
        """The |t| from which on a difference counts; infinite before the first look."""
        first = self._spending.first
        if pairs < first:
            return inf
        if pairs > EXACT:
            return _quantile(pairs, self.new(pairs))
        with self._lock:
            while len(self._critical) <= pairs - first:
                self._advance(first + len(self._critical))
            return self._critical[pairs - first]

    def new(self, pairs: int) -> float:
        """What of the level is newly spent at so many pairs."""
        return self._level * (self._spending.spent(pairs) - self._spending.spent(pairs - 1))

    def _advance(self, pairs: int) -> None:
        import numpy as np
        from scipy.optimize import brentq
        from scipy.special import stdtr

        if self._state is None:
            critical = _quantile(pairs, self.new(pairs))
            edges = np.linspace(-1, 1, _CELLS + 1) * np.arctan(critical / (pairs - 1) ** 0.5)
            below = stdtr(pairs - 1, (pairs - 1) ** 0.5 * np.tan(edges))
        else:
            angles, masses = self._state
            step = _Step(pairs - 1, angles)
            # By symmetry twice the upper tail.
            crossed = lambda edge: 2 * float(masses @ (1 - step.below(np.array([edge]))[:, 0])) - self.new(pairs)  # noqa: E731
            edge = brentq(crossed, 0.0, pi / 2 - 1e-9, xtol=1e-10)
            critical = (pairs - 1) ** 0.5 * float(np.tan(edge))
            edges = np.linspace(-edge, edge, _CELLS + 1)
            below = masses @ step.below(edges)
        self._critical.append(critical)
        self._state = ((edges[1:] + edges[:-1]) / 2, np.diff(below))


class _Step:
    """How the angle moves with one more pair, from each of some angles."""

    def __init__(self, pairs: int, angles: Any) -> None:
        import numpy as np
        from scipy.special import stdtr

        self._pairs = pairs
        along = pairs**0.5 * np.sin(angles)
        self._radius, self._turn = np.hypot(1, along)[:, None], np.arctan(along)[:, None]
        self._nodes = np.linspace(-pi / 2, pi / 2, _NODES)
        with np.errstate(over="ignore"):
            self._table = stdtr(pairs, pairs**0.5 * np.tan(self._nodes))
        self._table[0], self._table[-1] = 0.0, 1.0

    def below(self, angles: Any) -> Any:
        """P(next angle <= each of `angles`), a row for each angle before."""
        import numpy as np

        # radius * sin(f + turn) <= height: f + turn is left of the arc above it, or right of it.
        height = (self._pairs + 1) ** 0.5 * np.sin(angles)[None, :] / self._radius
        rise = np.arcsin(np.clip(height, -1, 1))
        share = self._share(rise - self._turn) - self._share(-pi - rise - self._turn)
        share = share + 1 - self._share(pi - rise - self._turn)
        return np.where(height >= 1, 1.0, np.where(height <= -1, 0.0, share))

    def _share(self, angle: Any) -> Any:
        import numpy as np

        return np.interp(angle, self._nodes, self._table)


@lru_cache(maxsize=1024)
def boundary(level: float, spending: Spending) -> Boundary:
    """The boundary of one comparison at a level that is already shared with the others of its table."""
    return Boundary(level, spending)


def _quantile(pairs: int, share: float) -> float:
    from scipy.special import stdtrit

    return float(-stdtrit(pairs - 1, share / 2))


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


SHARE: Final = 0.25
"""Of the level, spent at the first look; the rest follows with each further repeat, and never ends."""
_STILL: Final = 1e-13  # of the variances of two candidates: what is left of it by rounding


@dataclass(frozen=True, slots=True)
class Beaten:
    """That a candidate is out, and by whom."""

    by: int
    difference: float  # mean of what the other one is ahead, above 0
    t: float
    needed: float


def beaten(
    scores: Mapping[int, Sequence[float]], rivals: int, level: float, first: int, *, higher: bool
) -> dict[int, Beaten]:
    """The candidates that another one has beaten; `scores` are by candidate, of the same repeats in the same order.

    Paired t-tests of every two candidates, as irace has them (Birattari, Yuan, Balaprakash & Stuetzle 2010; Lopez-
    Ibanez et al., Oper Res Perspect 3, 2016, 43-58), but on a boundary that holds for looks after every repeat from
    the `first` on, at level / rivals one-sided, where `rivals` are all others that began. So the candidate whose true
    mean is best is ever beaten with probability `level` at most: only `rivals` tests concern it, and each crosses
    with level / rivals at most, whatever was dropped before and whoever looked when (Bonferroni). It assumes normal
    differences. The best mean so far is never beaten.
    """
    import numpy as np

    candidates = list(scores)
    count = len(next(iter(scores.values()), ()))
    if len(candidates) < 2 or count < first or rivals < 1:
        return {}
    runs = np.array([scores[one] for one in candidates]) * (1.0 if higher else -1.0)
    # One side of a boundary of two: whoever is on the other side first has left the race.
    needed = boundary(min(1.0, 2 * level / rivals), Spending(first, SHARE)).at(count)
    means, noise = runs.mean(axis=1), np.cov(runs)
    ahead = means[None, :] - means[:, None]  # by how much the second is ahead of the first
    own = np.diag(noise)[:, None] + np.diag(noise)[None, :]
    variance = own - 2 * noise
    varies = variance > _STILL * own  # a difference that is the same with every seed says nothing of chance
    t = np.where(varies, ahead * math.sqrt(count) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
    best = t.argmax(axis=1)
    return {
        one: Beaten(candidates[best[at]], float(ahead[at, best[at]]), float(t[at, best[at]]), needed)
        for at, one in enumerate(candidates)
        if t[at, best[at]] >= needed
    }
