"""The head of SEC's experiments: batch norm of the features, then one linear layer."""

from collections import OrderedDict
from typing import Literal

from torch import nn

from workers.heads import linear


class BnFc(nn.Sequential):
    """Batch norm, which trains also where the backbone's are frozen, and one linear layer; the output is raw."""

    label = "BN-FC"
    paper = "SEC app. B"
    output = "raw"

    def __init__(
        self, features: int, dim: int, *, init: Literal["default", "kaiming", "orthogonal"] = "default"
    ) -> None:
        super().__init__(OrderedDict(norm=nn.BatchNorm1d(features), linear=linear(features, dim, init)))
