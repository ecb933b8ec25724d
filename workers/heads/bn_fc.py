"""The head of SEC's experiments: batch norm of the features, then one linear layer."""

from typing import Literal

from torch import Tensor, nn

from workers.heads import linear


class BnFc(nn.Module):
    """Batch norm, which trains also where the backbone's are frozen, and one linear layer; the output is raw."""

    label = "BN-FC"
    paper = "SEC app. B"
    version = 1
    output = "raw"

    def __init__(
        self, features: int, dim: int, *, init: Literal["default", "kaiming", "orthogonal"] = "default"
    ) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.linear = linear(features, dim, init)

    def forward(self, features: Tensor) -> Tensor:
        embeddings: Tensor = self.linear(self.norm(features))
        return embeddings
