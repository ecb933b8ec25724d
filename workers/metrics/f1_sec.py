"""F1 of the pairs that the clustering of SEC's code joins."""

import math

from workers.evaluation.evaluate import Evaluation


class SecPairF1:
    """2PR / (P + R) over pairs of images: those in one cluster are found, those of one class are to be found.

    Clusters as in SEC's code, by scikit-learn's k-means of its time: the tightest of 10 starts by k-means++, at most
    300 iterations each.
    """

    label = "F1"
    paper = "SEC table 2, by its code"
    better = "higher"
    needs = "clusters_sec"
    caption = "of clusters by k-means as in SEC's code (k-means++, the tightest of 10 starts)"

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.contingency_sec.pair_f1 if evaluation.finite else math.nan
