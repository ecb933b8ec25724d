"""The head "WN" of SEC's author response: a weight-normalized linear layer, to be compared with SEC."""

from collections import OrderedDict
from typing import Literal

from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from workers.heads import linear


class WeightNormFc(nn.Sequential):
    """One linear layer, each row of whose weight is a length times a direction (Salimans and Kingma).

    `first_bn` puts SEC's usual batch norm before it.
    """

    label = "WN-FC"
    paper = "SEC author response, table 5"
    output = "raw"

    def __init__(
        self,
        features: int,
        dim: int,
        *,
        init: Literal["default", "kaiming", "orthogonal"] = "default",
        first_bn: bool = False,
    ) -> None:
        first = nn.BatchNorm1d(features) if first_bn else nn.Identity()
        super().__init__(OrderedDict(first=first, linear=weight_norm(linear(features, dim, init))))
