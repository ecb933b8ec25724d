"""Accuracy of linear classifiers on the layers of a network."""

from collections.abc import Mapping
from typing import Literal

from workers.evaluation.probe import Classified


class LinearTop1:
    """The share of images whose class a linear probe of one convolution's maps says first.

    Equal scores count as the expectation under random order. The probes are trained at the end of a training, as its
    task says.
    """

    label = "Top 1"
    paper = "SVMax table 5, after Zhang et al., ECCV 2016"
    version = 1
    better = "higher"
    reads = "layers"
    needs = "probe"

    def __init__(self, *, k: Literal["conv1", "conv2", "conv3", "conv4", "conv5"] = "conv5") -> None:
        self.layer = k

    def __call__(self, evaluation: Mapping[str, Classified]) -> float:
        """The accuracy, 0 to 1; NaN of a layer that is not among these."""
        found = evaluation.get(self.layer)
        return float("nan") if found is None else found.hits(1).mean().item()
