"""Top-k accuracy of a linear classifier on features that no label has shaped."""

from workers.evaluation.told_classes import Classified


class Top:
    """The share of images whose class is among the k that a linear probe says first.

    Equal scores count as the expectation under random order. The probe is trained at the end of a training, as its task
    says.
    """

    label = "Top"
    paper = "SEC table 5"
    version = 1
    better = "higher"
    reads = "features"
    needs = "probe"
    of_classes = True

    def __init__(self, *, k: int = 1) -> None:
        if k < 1:
            raise ValueError(f"top: k must be at least 1, found {k!r}")
        self.k = k

    def __call__(self, evaluation: Classified) -> float:
        """The accuracy, 0 to 1."""
        return evaluation.hits(self.k).mean().item()
