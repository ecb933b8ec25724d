"""The projection head of SimCLR: two linear layers with ReLU between them."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor, nn


class Projection(nn.Module):
    """Two linear layers with ReLU between them, whose output is not normalized.

    The first has `hidden` units, as many as there are features where that is none; `norm` puts batch norm before ReLU,
    as SimCLR's code does and its paper does not say.
    """

    label = "Projection"
    paper = "SimCLR (SEC table 5)"
    output = "raw"

    def __init__(
        self, features: int, dim: int, *, hidden: Annotated[int, Ge(1)] | None = None, norm: bool = False
    ) -> None:
        super().__init__()
        width = hidden or features
        between = [nn.BatchNorm1d(width), nn.ReLU()] if norm else [nn.ReLU()]
        # The batch norm has a bias of its own.
        self.layers = nn.Sequential(nn.Linear(features, width, bias=not norm), *between, nn.Linear(width, dim))

    def forward(self, features: Tensor) -> Tensor:
        embeddings: Tensor = self.layers(features)
        return embeddings
