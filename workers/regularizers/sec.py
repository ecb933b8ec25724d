"""Spherical embedding constraint."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor, nn

from workers import geometry


class Sec(nn.Module):
    """Mean of (||f|| - mu)^2, mu the mean norm of the batch: the population variance of its norms."""

    label = "SEC"
    paper = "SEC"
    formula = r"\frac{1}{b}\sum_{i}\left(\|f_i\|-\mu\right)^2,\quad\mu=\frac{1}{b}\sum_{j}\|f_j\|"
    norms = True

    def __init__(self, *, eta: Annotated[float, Ge(0)] = 1.0) -> None:
        super().__init__()
        self.eta = eta

    def forward(self, embeddings: Tensor) -> Tensor:
        lengths = geometry.norms(embeddings)
        return (lengths - lengths.mean()).square().mean()
