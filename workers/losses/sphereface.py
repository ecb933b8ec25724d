"""SphereFace with SEC's fixed norm of the features."""

from typing import Annotated

from annotated_types import Ge, Gt
from pytorch_metric_learning.losses import SphereFaceLoss

from workers.losses._shared import ClassifierOfDirections


class SphereFace(ClassifierOfDirections):
    """Mean cross-entropy of scale * cos(theta_c), but scale * psi(theta_y) for an image's own class y.

    psi(theta) = (-1)^k cos(margin * theta) - 2k on [k pi / margin, (k + 1) pi / margin]. SEC fixes the norm of the
    features to `scale`; the original multiplies by ||f||, as pytorch-metric-learning does, and anneals the margin in,
    which is not done here. With margin 4 SEC's training did not converge. Class vectors start at normal(0, init_std) as
    in InsightFace; large ones hardly turn under SGD.
    """

    label = "SphereFace"
    paper = "Liu et al. 2017 (SEC table 4)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{s\psi(\theta_{y_i})}}{e^{s\psi(\theta_{y_i})}+\sum_{c\neq y_i}e^{s"
        r"\cos\theta_c}},"
        r"\quad\psi(\theta)=(-1)^k\cos(m\theta)-2k,\quad\theta\in\left[\tfrac{k\pi}{m},\tfrac{(k+1)\pi}{m}"
        r"\right]"
    )
    version = 2
    order = "free"

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        margin: Annotated[int, Ge(1)] = 3,
        scale: Annotated[float, Gt(0)] = 64.0,
        init_std: Annotated[float, Gt(0)] = 0.01,
    ) -> None:
        super().__init__(SphereFaceLoss, dim, classes, init_std, margin=margin, scale=scale)
