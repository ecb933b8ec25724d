"""Heads: modules whose `forward` turns features [b, features] into embeddings [b, dim]; one file a head."""

from typing import Literal

from torch import nn

Init = Literal["default", "kaiming", "orthogonal"]


def linear(features: int, dim: int, init: Init) -> nn.Linear:
    """A linear layer; weights by PyTorch's default (SEC), Kaiming's fan-out (Proxy-Anchor) or orthogonal (SVMax)."""
    layer = nn.Linear(features, dim)
    if init == "default":
        return layer
    if init == "kaiming":
        nn.init.kaiming_normal_(layer.weight, mode="fan_out")
    else:
        nn.init.orthogonal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
