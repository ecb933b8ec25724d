"""Top-k accuracy of a linear classifier on features that no label has shaped."""

from typing import Annotated

from annotated_types import Ge

from workers.evaluation.probe import Classified


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

    def __init__(self, *, k: Annotated[int, Ge(1)] = 1) -> None:
        self.k = k

    def __call__(self, evaluation: Classified) -> float:
        """The accuracy, 0 to 1."""
        return evaluation.hits(self.k).mean().item()
