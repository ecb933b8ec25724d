"""Recall at k as metric learning means it: a hit rate."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class Recall:
    """The share of images that have one of their class among their k nearest others, by the cosine.

    Images whose cosines differ from that of the closest own one by no more than rounding (16 machine epsilons, 1.9e-6
    in float32) are tied with it, and count as the expectation under random order: an embedding that has collapsed, in
    part or altogether, scores what chance gives. Images without another of their class do not count.
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
        """The recall at k, 0 to 1."""
        return self.each(evaluation).mean().item()
