"""Accuracy of linear classifiers on the layers of a network."""

from collections.abc import Mapping
from typing import Literal

from workers.evaluation.probe import Classified


class LinearTop1:
    """The share of images whose class has the highest score by a linear probe of one convolution's maps.

    Equal scores count by their expectation in random order. The task trains the probes at the end of a training.
    """

    label = "Top 1"
    paper = "SVMax table 5, after Zhang et al., ECCV 2016"
    better = "higher"
    reads = "layers"
    needs = "probe"

    def __init__(self, *, k: Literal["conv1", "conv2", "conv3", "conv4", "conv5"] = "conv5") -> None:
        self.layer = k

    def __call__(self, evaluation: Mapping[str, Classified]) -> float:
        found = evaluation.get(self.layer)
        return float("nan") if found is None else found.hits(1).mean().item()
