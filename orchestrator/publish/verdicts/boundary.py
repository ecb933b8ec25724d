"""From which t on a difference counts, when one may have looked after every pair before: exact for few pairs."""

from functools import lru_cache
from math import inf, pi
from threading import Lock
from typing import Any, Final

from orchestrator.publish.verdicts.spending import Spending

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
