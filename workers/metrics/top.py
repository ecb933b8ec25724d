"""Top-k accuracy of a linear classifier on features that were trained without labels."""

from typing import Annotated

from annotated_types import Ge

from workers.evaluation.probe import Classified


class Top:
    """The share of images whose class is among the k with the highest scores by a linear probe.

    Equal scores count by their expectation in random order. The task trains the probe at the end of a training.
    """

    label = "Top"
    paper = "SEC table 5"
    better = "higher"
    reads = "features"
    needs = "probe"
    of_classes = True

    def __init__(self, *, k: Annotated[int, Ge(1)] = 1) -> None:
        self.k = k

    def __call__(self, evaluation: Classified) -> float:
        return evaluation.hits(self.k).mean().item()
