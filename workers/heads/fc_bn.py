"""The head "BN" of SEC's author response: batch norm of the embedding, to be compared with SEC."""

from typing import Literal

from torch import Tensor, nn

from workers.heads import linear


class FcBn(nn.Module):
    """One linear layer, then batch norm of its output; `first_bn` puts SEC's usual batch norm before it as well."""

    label = "FC-BN"
    paper = "SEC author response, table 5"
    version = 1
    output = "raw"

    def __init__(
        self,
        features: int,
        dim: int,
        *,
        init: Literal["default", "kaiming", "orthogonal"] = "default",
        first_bn: bool = False,
    ) -> None:
        super().__init__()
        self.first = nn.BatchNorm1d(features) if first_bn else nn.Identity()
        self.linear = linear(features, dim, init)
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, features: Tensor) -> Tensor:
        """Features [b, features] to raw embeddings [b, dim]."""
        embeddings: Tensor = self.norm(self.linear(self.first(features)))
        return embeddings
