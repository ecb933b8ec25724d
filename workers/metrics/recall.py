"""Recall at k as in metric learning: a hit rate."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class Recall:
    """The share of images that have one of their class among their k nearest others, by the cosine.

    Images whose cosines differ from that of the closest own one by at most rounding (16 machine epsilons, 1.9e-6 in
    float32) are tied with it, and count by their expectation in random order: a collapsed embedding has the score of
    chance. Images without another of their class do not count.
    """

    label = "R"
    paper = "SEC table 2"
    version = 2
    better = "higher"
    needs = "neighbours"
    over = "queries"

    def __init__(self, *, k: Annotated[int, Ge(1)] = 1) -> None:
        self.k = k

    def each(self, evaluation: Evaluation) -> Tensor:
        """How likely one of a query's class is among its k nearest, float64 [queries]."""
        return evaluation.neighbours.hit_rate(self.k)

    def __call__(self, evaluation: Evaluation) -> float:
        return self.each(evaluation).mean().item()
