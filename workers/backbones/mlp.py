"""A multilayer perceptron on the pixels."""

from itertools import pairwise
from typing import Annotated

import torch
from annotated_types import Ge
from torch import nn


class Mlp(nn.Module):
    """`depth` layers of `width` units with batch norm and ReLU, on the flattened image."""

    label = "MLP"
    flat = True

    def __init__(
        self, channels: int, side: int, *, width: Annotated[int, Ge(1)] = 128, depth: Annotated[int, Ge(1)] = 2
    ) -> None:
        super().__init__()
        widths = [channels * side * side, *[width] * depth]
        layers = [  # the batch norm has a bias of its own
            nn.Sequential(nn.Linear(wide, width, bias=False), nn.BatchNorm1d(width), nn.ReLU())
            for wide, width in pairwise(widths)
        ]
        self.layers = nn.Sequential(nn.Flatten(), *layers)
        self.features = widths[-1]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(images)
        return features
