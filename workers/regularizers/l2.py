"""L2 regularization of embeddings."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor, nn

from workers.geometry import precise


class L2(nn.Module):
    """Mean of ||f||^2 over the batch, without a factor 1/2 and without a root."""

    label = "L2"
    paper = "SEC eq. 30"
    formula = r"\frac{1}{b}\sum_{i}\|f_i\|^2"
    norms = True

    def __init__(self, *, eta: Annotated[float, Ge(0)] = 1.0) -> None:
        super().__init__()
        self.eta = eta

    def forward(self, embeddings: Tensor) -> Tensor:
        return precise(embeddings).square().sum(dim=1).mean()
