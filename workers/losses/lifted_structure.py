"""Lifted structure loss."""

from typing import Annotated

from annotated_types import Ge
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import LiftedStructureLoss
from torch import Tensor, nn

from workers import geometry


class LiftedStructure(nn.Module):
    """(1 / 2|P|) sum over P of max(0, log(sum_k e^{margin - D_ik} + sum_l e^{margin - D_jl}) + D_ij)^2.

    P are the positive pairs (i, j), k and l the negatives of i and of j, D the Euclidean distance of f^, or with `unit:
    false` of raw f, as in the original; that of pytorch-metric-learning is of f^ alone.
    """

    label = "Lifted structure"
    paper = "Song et al. 2016"
    formula = (
        r"\frac{1}{2|P|}\sum_{(i,j)\in P}\Bigl[\log\Bigl(\sum_{k}e^{m-D_{ik}}+\sum_{l}e^{m-D_{jl}}"
        r"\Bigr)+D_{ij}\Bigr]_+^2,"
        r"\quad D_{ij}=\|\hat f_i-\hat f_j\|"
    )
    order = "free"

    def __init__(self, *, margin: Annotated[float, Ge(0)] = 1.0, unit: bool = True) -> None:
        super().__init__()
        self.unit = unit
        # The library normalizes by default, which would undo `unit: false`.
        self.loss = LiftedStructureLoss(
            neg_margin=margin, pos_margin=0, distance=LpDistance(normalize_embeddings=False)
        )

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        rows = geometry.unit(embeddings) if self.unit else geometry.precise(embeddings)
        loss: Tensor = self.loss(rows, labels)
        return loss
