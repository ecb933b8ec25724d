"""Recall at k as metric learning means it: a hit rate."""

from workers.evaluate import Evaluation


class Recall:
    """The share of images that have one of their class among their k nearest others, by the cosine.

    A tie is a hit: an image counts when fewer than k images of other classes are strictly closer than its closest own.
    A query equally far from all images is a miss. Images without another of their class do not count.
    """

    label = "R"
    paper = "SEC table 2"
    version = 1
    better = "higher"
    needs = "neighbours"

    def __init__(self, *, k: int = 1) -> None:
        if k < 1:
            raise ValueError(f"recall: k must be at least 1, found {k!r}")
        self.k = k

    def __call__(self, evaluation: Evaluation) -> float:
        """The recall at k, 0 to 1."""
        return evaluation.neighbours.rank.le(self.k).double().mean().item()
