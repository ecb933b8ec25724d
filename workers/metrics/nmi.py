"""Normalized mutual information of classes and clusters."""

import math
from typing import Literal

from sklearn.metrics import normalized_mutual_info_score

from workers.evaluate import Evaluation


class NormalizedMutualInformation:
    """I(classes, clusters) over the mean of both entropies: the arithmetic of SEC's code, or the geometric of SVMax."""

    label = "NMI"
    paper = "SEC table 2"
    version = 1
    better = "higher"
    needs = "clusters"

    def __init__(self, *, average: Literal["arithmetic", "geometric"] = "arithmetic") -> None:
        if average not in {"arithmetic", "geometric"}:
            raise ValueError(f"nmi: average must be 'arithmetic' or 'geometric', found {average!r}")
        self.average = average

    def __call__(self, evaluation: Evaluation) -> float:
        """The NMI, 0 to 1."""
        if not evaluation.finite:
            return math.nan
        classes, clusters = evaluation.classes.cpu().numpy(), evaluation.clusters.numpy()
        return float(normalized_mutual_info_score(classes, clusters, average_method=self.average))
