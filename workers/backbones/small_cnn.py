"""A small convolutional network for images of a few dozen pixels."""

from itertools import pairwise

import torch
from torch import nn


class SmallCnn(nn.Module):
    """`blocks` of 3x3 convolution, batch norm and ReLU, then global average pooling.

    A block halves the side while it is at least 4. The first has `width` channels, each further one twice as many.
    """

    label = "Small CNN"
    version = 1

    def __init__(self, channels: int, side: int, *, width: int = 32, blocks: int = 2) -> None:
        super().__init__()
        if width < 1 or blocks < 1:
            raise ValueError(f"small_cnn: width and blocks must be at least 1, found {width} and {blocks}")
        widths = [channels, *(width * 2**block for block in range(blocks))]
        layers: list[nn.Module] = []
        for wide, narrow in pairwise(widths):
            layers += [nn.Conv2d(wide, narrow, 3, padding=1, bias=False), nn.BatchNorm2d(narrow), nn.ReLU()]
            if side >= 4:
                layers.append(nn.MaxPool2d(2))
                side //= 2
        self.layers = nn.Sequential(*layers)
        self.features = widths[-1]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images [b, c, h, w] to features [b, features]."""
        # Unlike adaptive pooling, a mean has a deterministic gradient on a GPU.
        features: torch.Tensor = self.layers(images).mean(dim=(2, 3))
        return features
