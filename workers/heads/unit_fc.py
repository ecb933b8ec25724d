"""The head of SVMax: embeddings on the unit sphere."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from workers.heads import linear


class UnitFc(nn.Module):
    """One linear layer and L2 normalization: every embedding has norm 1, so that regularizers of norms say nothing."""

    label = "FC, unit norm"
    paper = "SVMax sec. 4"
    output = "unit"

    def __init__(
        self, features: int, dim: int, *, init: Literal["default", "kaiming", "orthogonal"] = "default"
    ) -> None:
        super().__init__()
        self.linear = linear(features, dim, init)

    def forward(self, features: Tensor) -> Tensor:
        """Features [b, features] to embeddings [b, dim] of norm 1."""
        return functional.normalize(self.linear(features), dim=1)
