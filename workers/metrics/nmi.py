"""Normalized mutual information of classes and clusters."""

import math
from typing import Literal

from sklearn.metrics import normalized_mutual_info_score

from workers.evaluation.evaluate import Evaluation


class NormalizedMutualInformation:
    """I(classes, clusters) over the mean of both entropies: arithmetic as in SEC's code, or SVMax's `nmi@geometric`."""

    label = "NMI"
    paper = "SEC table 2"
    better = "higher"
    needs = "clusters"
    caption = "of clusters by faiss's k-means (one random start, 20 iterations)"

    def __init__(self, *, k: Literal["arithmetic", "geometric"] = "arithmetic") -> None:
        self.k = k

    def __call__(self, evaluation: Evaluation) -> float:
        if not evaluation.finite:
            return math.nan
        classes, clusters = evaluation.classes.cpu().numpy(), evaluation.clusters.numpy()
        return float(normalized_mutual_info_score(classes, clusters, average_method=self.k))
