"""R-precision."""

from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class RPrecision:
    """The mean share of the R nearest that are of an image's class, R the others of the class.

    Images whose cosines differ by at most rounding (16 machine epsilons, 1.9e-6 in float32) are tied, measured against
    the closest of the class, and count by their expectation in random order. Images without another of their class do
    not count.
    """

    label = "RP"
    paper = "Musgrave et al. 2020"
    version = 2
    better = "higher"
    needs = "neighbours"
    over = "queries"

    def each(self, evaluation: Evaluation) -> Tensor:
        """The share of the R nearest of each query, float64 [queries]."""
        return evaluation.neighbours.precision

    def __call__(self, evaluation: Evaluation) -> float:
        return self.each(evaluation).mean().item()
