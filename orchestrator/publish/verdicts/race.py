"""A race of candidates over repeats: whom another one has beaten, however often one has looked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.publish.verdicts.boundary import boundary
from orchestrator.publish.verdicts.spending import Spending

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
