"""R-precision."""

from workers.evaluate import Evaluation


class RPrecision:
    """The mean share of the R nearest that are of an image's class, R the others of the class.

    Images without another of their class do not count. Of equally close images those of other classes come first.
    """

    label = "RP"
    paper = "Musgrave et al. 2020"
    version = 1
    better = "higher"
    needs = "neighbours"

    def __call__(self, evaluation: Evaluation) -> float:
        """The R-precision, 0 to 1."""
        return evaluation.neighbours.precision.mean().item()
