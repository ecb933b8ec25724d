"""The head of SVMax: embeddings on the unit sphere."""

import torch
from torch import nn
from torch.nn import functional


class UnitFc(nn.Module):
    """One linear layer and L2 normalization: every embedding has norm 1, so that regularizers of norms say nothing."""

    label = "FC, unit norm"
    paper = "SVMax sec. 4"
    version = 1
    output = "unit"

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, dim)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Features [b, features] to embeddings [b, dim] of norm 1."""
        return functional.normalize(self.linear(features), dim=1)
