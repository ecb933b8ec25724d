"""The cosines of negative pairs."""

from typing import Literal

from workers.evaluation.evaluate import Evaluation


class NegativeCosine:
    """The mean of cos_an over all pairs of images of two classes, or its standard deviation as `cos_an@std`."""

    label = "cos_an"
    paper = "SEC figure 5"
    better = "none"
    needs = "embeddings"

    def __init__(self, *, k: Literal["mean", "std"] = "mean") -> None:
        self.k = k

    def __call__(self, evaluation: Evaluation) -> float:
        cosines = evaluation.cosines.negative
        return cosines.mean if self.k == "mean" else cosines.std
