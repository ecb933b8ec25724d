"""Soft nearest neighbour loss: the neighbours of an image, drawn by distance, should be of its class."""

from typing import Annotated

import torch
from annotated_types import Gt
from torch import Tensor, nn

from workers import geometry


class SoftNeighbours(nn.Module):
    """Mean of -log(sum_{own} e^{-d^2 / T} / sum_{all others} e^{-d^2 / T}), d the distance of unit embeddings."""

    label = "Soft neighbours"
    paper = "Frosst, Papernot & Hinton, ICML 2019"
    formula = (
        r"-\frac{1}{b}\sum_i\log\frac{\sum_{j\neq i,\,y_j=y_i}e^{-\|\hat f_i-\hat f_j\|^2/T}}"
        r"{\sum_{k\neq i}e^{-\|\hat f_i-\hat f_k\|^2/T}}"
    )
    version = 1
    order = "free"

    def __init__(self, *, temperature: Annotated[float, Gt(0)] = 0.2) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Raw embeddings [b, d] and labels [b] to a scalar; images without another of their class are left out."""
        unit = geometry.unit(embeddings)
        closeness = (2 * unit @ unit.T - 2) / self.temperature
        itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
        own = (labels[:, None] == labels) & ~itself
        near = torch.where(own, closeness, -torch.inf)[own.any(dim=1)]
        every = closeness.masked_fill(itself, -torch.inf)[own.any(dim=1)]
        return (every.logsumexp(dim=1) - near.logsumexp(dim=1)).sum() / max(1, len(near))
