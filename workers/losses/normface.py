"""NormFace, the normalized softmax."""

from typing import Annotated

from annotated_types import Gt
from pytorch_metric_learning.losses import NormalizedSoftmaxLoss

from workers.losses._shared import ClassifierOfDirections


class NormFace(ClassifierOfDirections):
    """Mean cross-entropy of scale * <w^_c, f^>: a linear classifier without bias between unit vectors.

    Class vectors start at normal(0, init_std) as in InsightFace; large ones hardly turn under SGD.
    The `NormalizedSoftmaxLoss` of pytorch-metric-learning is the same with vectors that start at normal(0, 1).
    """

    label = "NormFace"
    paper = "Wang et al. 2017 (ISA fig. 2, 8)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{s\langle\hat w_{y_i},\hat f_i\rangle}}{\sum_{c}e^{s\langle"
        r"\hat w_c,\hat f_i\rangle}}"
    )
    version = 2
    order = "free"

    def __init__(
        self, dim: int, classes: int, *, scale: Annotated[float, Gt(0)] = 64.0, init_std: Annotated[float, Gt(0)] = 0.01
    ) -> None:
        super().__init__(NormalizedSoftmaxLoss, dim, classes, init_std, temperature=1 / scale)
