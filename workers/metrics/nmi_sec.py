"""Normalized mutual information of classes and clusters, by the clustering of SEC's code."""

import math

from sklearn.metrics import normalized_mutual_info_score

from workers.evaluation.evaluate import Evaluation


class SecNormalizedMutualInformation:
    """I(classes, clusters) over the arithmetic mean of both entropies; clusters as in SEC's code.

    That is scikit-learn's k-means of its time: the tightest of 10 starts by k-means++, at most 300 iterations each.
    """

    label = "NMI"
    paper = "SEC table 2, by its code"
    better = "higher"
    needs = "clusters_sec"
    caption = "of clusters by k-means as in SEC's code (k-means++, the tightest of 10 starts)"

    def __call__(self, evaluation: Evaluation) -> float:
        if not evaluation.finite:
            return math.nan
        classes, clusters = evaluation.classes.cpu().numpy(), evaluation.clusters_sec.numpy()
        return float(normalized_mutual_info_score(classes, clusters, average_method="arithmetic"))
