"""F1 of the pairs that a clustering joins."""

import math

from torch import Tensor

from workers.evaluate import Evaluation


class PairF1:
    """2PR / (P + R) over pairs of images: those in one cluster are found, those of one class are to be found."""

    label = "F1"
    paper = "Song et al. 2017 (SEC table 2)"
    version = 1
    better = "higher"
    needs = "clusters"

    def __call__(self, evaluation: Evaluation) -> float:
        """The F1, 0 to 1; NaN where there is no pair of either sort."""
        if not evaluation.finite:
            return math.nan
        shared = evaluation.contingency
        pairs = _pairs(shared.clusters) + _pairs(shared.classes)
        return 2 * _pairs(shared.joint) / pairs if pairs else math.nan


def _pairs(counts: Tensor) -> int:
    return int((counts * (counts - 1)).sum()) // 2
