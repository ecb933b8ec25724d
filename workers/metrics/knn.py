"""Accuracy of the nearest neighbours' votes on features that were trained without labels."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from workers.evaluation.probe import Features


class Knn:
    """The share of images whose class wins the votes of their k nearest training images.

    A vote weighs e^(cosine / 0.07); equal votes count by their expectation in random order. Nothing is trained, so that
    checkpoints can be chosen by it.
    """

    label = "k-NN"
    paper = "Wu et al., CVPR 2018"
    better = "higher"
    reads = "features"
    over = "queries"

    def __init__(self, *, k: Annotated[int, Ge(1)] = 200) -> None:
        self.k = k

    def each(self, evaluation: Features) -> Tensor:
        """Whether each image's class wins, float64 [n]."""
        return evaluation.voted(self.k).hits(1)

    def __call__(self, evaluation: Features) -> float:
        return self.each(evaluation).mean().item()
