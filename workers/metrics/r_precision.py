"""R-precision."""

from torch import Tensor

from workers.evaluation.evaluate import Evaluation


class RPrecision:
    """The mean share of the R nearest that are of an image's class, R the others of the class.

    Images whose cosines differ by no more than rounding (16 machine epsilons, 1.9e-6 in float32) are tied, measured
    against the closest of the class, and count as the expectation under random order. Images without another of their
    class do not count.
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
        """The R-precision, 0 to 1."""
        return self.each(evaluation).mean().item()
