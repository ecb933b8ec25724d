"""The feature maps of some images: the channels of the last layer that are most active, and what the network sees."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.figures.arrays import Arrays, some
from workers.figures.options import FeatureMaps
from workers.figures.tiles import Tile, tiled

_HEAT: Final = np.array([[0, 0, 4], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 255, 164]], dtype=np.float64)
"""Colours from none to most, ever lighter, so that print in grey will do (matplotlib's inferno)."""


def drawn(count: int, query: Tensor | None, figure: FeatureMaps) -> Tensor:
    """Which of `count` images are shown, drawn by the figure's seed; queries where there are any."""
    every = torch.arange(count) if query is None else query.cpu().nonzero()[:, 0]
    return some(every, figure.images, figure.seed)


def arrays(labels: Tensor, index: Tensor, seen: Tensor, maps: Tensor, channels: int) -> Arrays:
    """Of n images `index`, with `label` [n]: `channel` [n, k], the channels of the greatest mean, most active first.

    `map` [n, k, h, w] and its `mean` [n, k]; `picture` [n, H, W, c] as bytes, the crop that the network sees. `labels`
    are those of all images, `maps` [n, c, h, w]; a transformer's patches [n, c, h x h, 1] become the square that they
    are of.
    """
    mean = maps.mean(dim=(2, 3))
    top = mean.topk(min(channels, maps.shape[1]), dim=1)
    chosen = maps.gather(1, top.indices[:, :, None, None].expand(-1, -1, *maps.shape[2:]))
    side = math.isqrt(maps.shape[2])
    if maps.shape[3] == 1 and side**2 == maps.shape[2]:
        chosen = chosen.reshape(*chosen.shape[:2], side, side)
    pictures = seen.float().round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
    return {
        "index": index.numpy(), "label": labels.cpu()[index].numpy(), "channel": top.indices.numpy(),
        "mean": top.values.numpy(), "map": chosen.numpy(), "picture": pictures.contiguous().numpy(),
    }  # fmt: skip


def sheet(found: Arrays, name: Callable[[int], str], side: int) -> bytes:
    """The picture of `arrays`: each image with its maps in a row, most active first.

    A map is drawn from zero, or its least value where that is below, to its own greatest; its mean stands under it.
    `name` gives the class of an image by its index.
    """

    def tiles(at: int) -> list[Tile]:
        picture = found["picture"][at].astype(np.uint8)
        seen = picture[..., 0] if picture.shape[-1] == 1 else picture
        shown = [Tile(seen, "thin", ["seen", name(int(found["index"][at]))])]
        for channel, mean, activation in zip(found["channel"][at], found["mean"][at], found["map"][at], strict=True):
            shown.append(Tile(_heat(activation), "thin", [f"channel {int(channel)}", f"mean {float(mean):.3g}"]))
        return shown

    return tiled([tiles(at) for at in range(len(found["index"]))], side)


def _heat(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """The colours of a map [h, w]."""
    floats = values.astype(np.float64)
    low, high = min(0.0, floats.min()), floats.max()
    share = (floats - low) / (high - low) if high > low else np.zeros_like(floats)
    at = np.linspace(0, 1, len(_HEAT))
    colours = np.stack([np.interp(share, at, _HEAT[:, channel]) for channel in range(3)], axis=-1)
    return colours.round().astype(np.uint8)
