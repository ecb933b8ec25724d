"""The share of accepted pairs of one class at a given share of accepted pairs of two."""

import math
from typing import Literal

from workers.evaluation.verification import Roc, Scores


class TrueAcceptRate:
    """The largest share of accepted pairs of one class by a threshold that accepts at most a share k of those of two.

    `tar@1e-3` is at a false accept rate of 0.001. There is no value with fewer than 1 / k pairs of two classes: LFW's
    3,000 give one at 1e-3, but not at 1e-4.
    """

    label = "TAR"
    paper = "Klare et al. 2015 (IJB-A)"
    better = "higher"
    reads = "pairs"

    def __init__(self, *, k: Literal["1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6"] = "1e-3") -> None:
        self._one_in = 10 ** int(k.removeprefix("1e-"))

    def __call__(self, evaluation: Scores) -> float:
        roc = Roc.of(evaluation)
        allowed = int(roc.false[-1]) // self._one_in
        return roc.tar[roc.false <= allowed].max().item() if allowed else math.nan
