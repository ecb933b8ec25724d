"""The rate of identification among distractors."""

import math
from collections.abc import Mapping
from typing import Literal

from torch import Tensor


class Rank1:
    """The share of searches for another image of a probe's identity that find it first, before k distractors.

    Every ordered pair of probes of one identity is a search (MegaFace, challenge 1). `rank1@1e6` is among a million.
    There is no value if the data set has no list of k distractors.
    """

    label = "Rank-1"
    paper = "Kemelmacher-Shlizerman et al. 2016 (MegaFace)"
    better = "higher"
    reads = "identification"

    def __init__(self, *, k: Literal["1e1", "1e2", "1e3", "1e4", "1e5", "1e6"] = "1e6") -> None:
        self._size = int(float(k))

    def __call__(self, evaluation: Mapping[int, Tensor]) -> float:
        first = evaluation.get(self._size)
        return first.mean().item() if first is not None and len(first) else math.nan
