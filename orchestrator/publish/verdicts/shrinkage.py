"""What comparisons of one metric say together of each one's true difference and spread: the lucky ones less than seems.

The differences that a few seeds show are larger than the true ones, most of all where these are small: who takes them
as they are foresees too much. So true differences are taken to be normal around 0, in deviations of a paired
difference, with a width that all comparisons of the metric tell together (empirical Bayes with a prior on the width:
Gelman, Bayesian Anal 1, 2006, 515-534), and their variances to be alike as far as they look alike (Smyth, Stat Appl
Genet Mol Biol 3, 2004).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.views.outcomes import Statistic

_WIDTHS: Final = (0.02, 50.0, 60)
"""The narrowest, the widest, and how many between them, in standard deviations of a paired difference."""
_SCALE: Final = 1.0
"""Of the half-Cauchy prior on the width: half of the mass below one deviation, and a heavy tail."""
_ALIKE: Final = 1e6
"""Degrees of freedom that stand for variances which do not differ."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A true difference and the standard deviation of a paired one."""

    effect: float
    std: float


class Shrinkage:
    """What was seen of the comparisons of one metric: paired differences, each of two seeds or more."""

    def __init__(self, seen: Sequence[Statistic]) -> None:
        import numpy as np
        from scipy import stats

        self._free, self._variance = _common([(one.n - 1, one.std**2) for one in seen if one.std])
        self._most = sum(one.n - 1 for one in seen if one.std)
        self._widths = np.geomspace(*_WIDTHS)
        # On a grid of logarithms the half-Cauchy has the width itself as a factor.
        weights = np.log(self._widths) - np.log1p((self._widths / _SCALE) ** 2)
        for comparison in seen:
            if comparison.std:
                free, variance = self._moderated(comparison)
                scale = np.sqrt(variance * (1 / comparison.n + self._widths**2))
                weights += stats.t.logpdf(comparison.mean, free, scale=scale)
        weights = np.exp(weights - weights.max())
        self._weights = weights / weights.sum()

    def width(self, random: Any) -> float:
        """How far apart true differences may be, in standard deviations of a paired difference; drawn."""
        return float(random.choice(self._widths, p=self._weights))

    def drawn(self, random: Any, width: float, own: Statistic | None) -> Truth:
        """A truth that may be, for a comparison that was seen (with a spread) or for one that was not."""
        if own is None or not own.std:
            free = min(self._free or self._most, self._most)
            std = math.sqrt(self._variance * free / random.chisquare(free))
            return Truth(random.normal(0.0, width * std), std)
        free, variance = self._moderated(own)
        total = 1 / own.n + width**2
        # The mean tells of the variance too, since differences are as wide as `width` deviations.
        std = math.sqrt((free * variance + own.mean**2 / total) / random.chisquare(free + 1))
        kept = width**2 / total
        return Truth(random.normal(kept * own.mean, std * math.sqrt(kept / own.n)), std)

    def _moderated(self, one: Statistic) -> tuple[float, float]:
        """Degrees of freedom and variance of one comparison, with what the others say of them."""
        own = one.n - 1
        free = min(self._free + own, self._most)
        variance = (self._free * self._variance + own * (one.std or 0.0) ** 2) / (self._free + own)
        return free, variance


def _common(variances: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Degrees of freedom and variance of what variances have in common, by the moments of their logarithms."""
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    if not variances:
        return 0.0, 0.0
    total = sum(free for free, _ in variances)
    pooled = sum(free * one for free, one in variances) / total
    if len(variances) < 2:
        return 0.0, pooled
    logs = [math.log(one) - digamma(free / 2) + math.log(free / 2) for free, one in variances]
    mean = math.fsum(logs) / len(logs)
    expected = math.fsum(float(polygamma(1, free / 2)) for free, _ in variances) / len(logs)
    beyond = math.fsum((one - mean) ** 2 for one in logs) / (len(logs) - 1) - expected
    if beyond <= float(polygamma(1, _ALIKE / 2)):
        return _ALIKE, pooled
    free = 2 * float(brentq(lambda half: float(polygamma(1, half)) - beyond, 1e-3, _ALIKE))
    return free, math.exp(mean + float(digamma(free / 2)) - math.log(free / 2))
