"""The cosines of positive pairs."""

from typing import Literal

from workers.evaluation.evaluate import Evaluation


class PositiveCosine:
    """The mean of cos_ap over all pairs of images of one class, or its standard deviation as `cos_ap@std`."""

    label = "cos_ap"
    paper = "SEC figure 5"
    better = "none"
    needs = "embeddings"

    def __init__(self, *, k: Literal["mean", "std"] = "mean") -> None:
        self.k = k

    def __call__(self, evaluation: Evaluation) -> float:
        cosines = evaluation.cosines.positive
        return cosines.mean if self.k == "mean" else cosines.std
