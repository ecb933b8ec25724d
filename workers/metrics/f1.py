"""F1 of the pairs that a clustering joins."""

import math

from workers.evaluation.evaluate import Evaluation


class PairF1:
    """2PR / (P + R) over pairs of images: those in one cluster are found, those of one class are to be found."""

    label = "F1"
    paper = "Song et al. 2017 (SEC table 2)"
    better = "higher"
    needs = "clusters"
    caption = "of clusters by faiss's k-means (one random start, 20 iterations)"

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.contingency.pair_f1 if evaluation.finite else math.nan
