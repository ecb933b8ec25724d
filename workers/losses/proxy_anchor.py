"""Proxy-Anchor loss."""

from typing import Annotated

from annotated_types import Gt
from pytorch_metric_learning.losses import ProxyAnchorLoss
from torch import Tensor

from workers.losses._shared import OfDirections


class ProxyAnchor(OfDirections):
    """Mean over the batch's classes of log(1 + sum_p e^{alpha(delta - S)}), plus mean over ALL of log(1 + sum_n ...).

    S is the cosine of an image and a class's proxy; the second sum is over the images n of other classes, of
    e^{alpha(delta + S)}. The authors train the proxies with 100 times the learning rate. It is the `ProxyAnchorLoss` of
    pytorch-metric-learning.
    """

    label = "Proxy-Anchor"
    paper = "Kim et al. 2020 (ISA eq. 4)"
    formula = (
        r"\frac{1}{|C^+|}\sum_{c\in C^+}\log\Bigl(1+\sum_{i:\,y_i=c}e^{\alpha(\delta-S_{i,c})}\Bigr)"
        r"+\frac{1}{C}\sum_{c=1}^{C}\log\Bigl(1+\sum_{i:\,y_i\neq c}e^{\alpha(\delta+S_{i,c})}\Bigr),"
        r"\quad S_{i,c}=\langle\hat f_i,\hat p_c\rangle"
    )
    order = "free"
    lr_scale = 100.0

    def __init__(self, dim: int, classes: int, *, alpha: Annotated[float, Gt(0)] = 32.0, delta: float = 0.1) -> None:
        super().__init__()
        self.loss = ProxyAnchorLoss(classes, dim, margin=delta, alpha=alpha)

    def class_vectors(self) -> Tensor:
        return self.loss.get_parameter("proxies")[:, None]
