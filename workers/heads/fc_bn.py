"""The head "BN" of SEC's author response, to be compared with SEC, and the end of InsightFace's networks."""

from collections import OrderedDict
from typing import Literal

from torch import nn

from workers.heads import linear


class FcBn(nn.Sequential):
    """One linear layer, then batch norm of its output; `first_bn` puts SEC's usual batch norm before it as well.

    Without `gain` batch norm has no factor to learn: each value has variance 1 over a batch (InsightFace's output E).
    """

    label = "FC-BN"
    paper = "SEC author response, table 5"
    output = "raw"
    added = ("gain",)

    def __init__(
        self,
        features: int,
        dim: int,
        *,
        init: Literal["default", "kaiming", "orthogonal"] = "default",
        first_bn: bool = False,
        gain: bool = True,
    ) -> None:
        first = nn.BatchNorm1d(features) if first_bn else nn.Identity()
        norm = nn.BatchNorm1d(dim)
        norm.weight.requires_grad_(gain)
        super().__init__(OrderedDict(first=first, linear=linear(features, dim, init), norm=norm))
