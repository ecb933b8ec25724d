"""SoftTriple loss, several centers per class."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt
from pytorch_metric_learning.losses import SoftTripleLoss
from torch import Tensor, nn

from workers.geometry import unit

_APART = 1e-5  # under the root, as in the authors' code: two equal centers still have a gradient


class SoftTriple(nn.Module):
    """Mean cross-entropy of la * (S'_c - delta at c = y), plus tau * R.

    S'_c is the mean of the cosines to class c's centers, weighted by their softmax at temperature gamma. R draws the
    centers of a class together: the sum of sqrt(2 + 1e-5 - 2 cos) over their pairs, divided by
    classes * centers * (centers - 1). The authors train 10 centers (SOP: 2), with 100 times the learning rate.
    The `SoftTripleLoss` of pytorch-metric-learning has no R.
    """

    label = "SoftTriple"
    paper = "Qian et al. 2019 (ISA table 1)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{\lambda(S'_{i,y_i}-\delta)}}{e^{\lambda(S'_{i,y_i}-\delta)}+"
        r"\sum_{c\neq y_i}e^{\lambda S'_{i,c}}}"
        r"+\frac{\tau}{CK(K-1)}\sum_{c}\sum_{k<k'}\sqrt{2-2\langle\hat w_c^k,\hat w_c^{k'}\rangle},"
        r"\quad S'_{i,c}=\sum_{k}\frac{e^{\langle\hat f_i,\hat w_c^k\rangle/\gamma}}"
        r"{\sum_{l}e^{\langle\hat f_i,\hat w_c^l\rangle/\gamma}}\langle\hat f_i,\hat w_c^k\rangle"
    )
    order = "free"
    lr_scale = 100.0

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        centers: Annotated[int, Ge(1)] = 10,
        la: Annotated[float, Gt(0)] = 20.0,
        gamma: Annotated[float, Gt(0)] = 0.1,
        tau: Annotated[float, Ge(0)] = 0.2,
        delta: float = 0.01,
    ) -> None:
        super().__init__()
        self.tau = tau
        self.shape = (classes, centers, dim)
        self.loss = SoftTripleLoss(classes, dim, centers_per_class=centers, la=la, gamma=gamma, margin=delta)

    def class_vectors(self) -> Tensor:
        """The centers of each class, [classes, centers, dim]."""
        centers: Tensor = self.loss.fc.T.reshape(self.shape)
        return centers

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor = self.loss(unit(embeddings), labels)
        if self.tau == 0 or self.shape[1] == 1:
            return loss
        return loss + self.tau * self._spread()

    def _spread(self) -> Tensor:
        """R, from the similarities within each class; those between all centers would not fit into memory for SOP."""
        classes, centers, _ = self.shape
        directions = unit(self.loss.fc.T).view(self.shape)
        cosines = directions @ directions.transpose(1, 2)
        first, second = torch.triu_indices(centers, centers, offset=1, device=cosines.device)
        distances = (2 + _APART - 2 * cosines[:, first, second]).clamp(min=_APART).sqrt()
        return distances.sum() / (classes * centers * (centers - 1))
