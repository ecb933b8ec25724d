"""The plain head: one linear layer."""

import torch
from torch import nn


class Fc(nn.Module):
    """One linear layer, whose output is not normalized."""

    label = "FC"
    version = 1
    output = "raw"

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, dim)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Features [b, features] to raw embeddings [b, dim]."""
        embeddings: torch.Tensor = self.linear(features)
        return embeddings
