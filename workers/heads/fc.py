"""The plain head: one linear layer."""

from typing import Literal

from torch import Tensor, nn

from workers.heads import linear


class Fc(nn.Module):
    """One linear layer, whose output is not normalized. With `relu` it is cut at 0: counts are not negative."""

    label = "FC"
    added = ("relu",)
    output = "raw"

    def __init__(
        self,
        features: int,
        dim: int,
        *,
        init: Literal["default", "kaiming", "orthogonal"] = "default",
        relu: bool = False,
    ) -> None:
        super().__init__()
        self.linear = linear(features, dim, init)
        self.relu = relu

    def forward(self, features: Tensor) -> Tensor:
        embeddings: Tensor = self.linear(features)
        return embeddings.relu() if self.relu else embeddings
