"""A small convolutional network for images of a few dozen pixels."""

from itertools import chain, pairwise
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from torch import nn

from workers.backbones import convolved
from workers.data.augmentation import SIGNED, Preprocess

_HALVED = 4  # the least side that is halved


class SmallCnn(nn.Module):
    """`blocks` of 3x3 convolution, batch norm and ReLU, then global average pooling.

    A block halves the side while it is at least 4. The first has `width` channels, each further one twice as many;
    `widths` gives the channels of each block instead. Without `norm`, `halve` or `padding` a block has no batch norm,
    no pooling, or loses its border; `bias` gives convolutions a bias. With `pool: flatten` the features are all values
    of the last maps, followed by `hidden` layers with ReLU. Pixels are [-1, 1], or [0, 1] unless `centred`.
    """

    label = "Small CNN"
    added = ("widths", "norm", "halve", "padding", "bias", "pool", "hidden", "centred")

    def __init__(  # noqa: PLR0913 - each is one choice of the network
        self,
        channels: int,
        side: int,
        *,
        width: Annotated[int, Ge(1)] = 32,
        blocks: Annotated[int, Ge(1)] = 2,
        widths: tuple[Annotated[int, Ge(1)], ...] = (),
        norm: bool = True,
        halve: bool = True,
        padding: bool = True,
        bias: bool = False,
        pool: Literal["avg", "flatten"] = "avg",
        hidden: tuple[Annotated[int, Ge(1)], ...] = (),
        centred: bool = True,
    ) -> None:
        super().__init__()
        self.preprocess = SIGNED if centred else Preprocess(mean=(0.0,))
        widths = widths or tuple(width * 2**block for block in range(blocks))
        layers: list[nn.Module] = []
        for wide, narrow in pairwise([channels, *widths]):
            if not padding and side < 3:
                raise ValueError(f"small_cnn: maps of side {side} are too small for a further block without padding")
            layers.append(nn.Conv2d(wide, narrow, 3, padding=int(padding), bias=bias))
            layers += [nn.BatchNorm2d(narrow), nn.ReLU()] if norm else [nn.ReLU()]
            side = side if padding else side - 2
            if halve and side >= _HALVED:
                layers.append(nn.MaxPool2d(2))
                side //= 2
        self.layers = nn.Sequential(*layers)
        self.pool: Literal["avg", "flatten"] = pool
        pooled = widths[-1] * (side**2 if pool == "flatten" else 1)
        dense = [(nn.Linear(*pair), nn.ReLU()) for pair in pairwise([pooled, *hidden])]
        self.hidden = nn.Sequential(*chain.from_iterable(dense))
        self.features = [pooled, *hidden][-1]

    def maps(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.layers(images)
        return maps

    def convolved(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return convolved(self.layers, images)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.maps(images)
        # Unlike adaptive pooling, a mean has a deterministic gradient on a GPU.
        features: torch.Tensor = self.hidden(maps.flatten(1) if self.pool == "flatten" else maps.mean(dim=(2, 3)))
        return features
