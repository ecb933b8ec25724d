"""CosFace, the softmax with a margin on the cosine."""

from typing import Annotated

from annotated_types import Ge, Gt
from pytorch_metric_learning.losses import CosFaceLoss

from workers.losses._shared import ClassifierOfDirections


class CosFace(ClassifierOfDirections):
    """Mean cross-entropy of scale * cos(theta_c), but scale * (cos(theta_y) - margin) for an image's own class y.

    Class vectors start at normal(0, init_std) as in InsightFace; large ones hardly turn under SGD. The library's, and
    so MLRC's, start at 1.
    """

    label = "CosFace"
    paper = "Wang et al. 2018 (SEC eq. 19)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{s(\cos\theta_{y_i}-m)}}{e^{s(\cos\theta_{y_i}-m)}"
        r"+\sum_{c\neq y_i}e^{s\cos\theta_c}},\quad\cos\theta_c=\langle\hat w_c,\hat f_i\rangle"
    )
    version = 2
    order = "free"

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        margin: Annotated[float, Ge(0)] = 0.35,
        scale: Annotated[float, Gt(0)] = 64.0,
        init_std: Annotated[float, Gt(0)] = 0.01,
    ) -> None:
        super().__init__(CosFaceLoss, dim, classes, init_std, margin=margin, scale=scale)
