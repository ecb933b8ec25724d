"""Mean average precision at R."""

from typing import Literal

from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class MeanAveragePrecision:
    """MAP@R: the mean over images of (1/R) sum over j <= R of precision(j) relevant(j), R the others of the class.

    Images whose cosines differ by at most rounding (16 machine epsilons, 1.9e-6 in float32) are tied, measured against
    the closest of the class, and count by their expectation in random order. Images without another of their class do
    not count.
    """

    label = "MAP"
    paper = "Musgrave et al. 2020"
    version = 2
    better = "higher"
    needs = "neighbours"
    over = "queries"

    def __init__(self, *, k: Literal["r"] = "r") -> None:
        """`k` is always R."""

    def each(self, evaluation: Evaluation) -> Tensor:
        """The average precision at R of each query, float64 [queries]."""
        return evaluation.neighbours.average_precision

    def __call__(self, evaluation: Evaluation) -> float:
        return self.each(evaluation).mean().item()
