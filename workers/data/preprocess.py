"""From the bytes of images to what a backbone was made for: size, order and range of its channels."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Preprocess:
    """(pixel / scale - mean) / std for each channel, after a resize to `side` and a turn of RGB into BGR.

    A backbone declares it as its attribute `preprocess`; the embedder applies it to whole batches on their device.
    """

    mean: tuple[float, ...]
    """By channel in the backbone's own order, after the division by `scale`; one value stands for all channels."""
    std: tuple[float, ...] = (1.0,)
    scale: float = 255.0
    bgr: bool = False
    """Whether the backbone wants blue first; images come with red first."""
    side: int | None = None
    """The side that images are resized to, bilinear and antialiased; none leaves them as they come."""

    def __post_init__(self) -> None:
        if not self.mean or len(self.std) not in {1, len(self.mean)}:
            raise ValueError(f"preprocess: {len(self.mean)} means and {len(self.std)} deviations do not fit together")
        if min(*self.std, self.scale) <= 0:
            raise ValueError("preprocess: scale and deviations must be above 0")
        if self.side is not None and self.side < 1:
            raise ValueError(f"preprocess: images cannot be resized to a side of {self.side}")

    def __call__(self, images: Tensor) -> Tensor:
        """Images [b, c, h, w] of values 0..255, bytes or floats, to float32; grey ones get the channels of `mean`."""
        channels = images.shape[1]
        if channels > 1 and len(self.mean) not in {1, channels}:
            raise ValueError(f"preprocess: images have {channels} channels, expected 1 or {len(self.mean)}")
        pixels = (images.flip(1) if self.bgr and channels > 1 else images).float()
        if self.side is not None and pixels.shape[-2:] != (self.side, self.side):
            size = (self.side, self.side)
            pixels = functional.interpolate(pixels, size, mode="bilinear", align_corners=False, antialias=True)
        mean, std = _constants(self, pixels.device)
        # A grey image becomes one of three equal channels here, by broadcasting.
        centred = (pixels / self.scale) - mean
        return centred if set(self.std) == {1.0} else centred.div_(std)


@lru_cache(maxsize=64)
def _constants(preprocess: Preprocess, device: torch.device) -> tuple[Tensor, Tensor]:
    """Mean and deviation [c, 1, 1], copied to a device once and not in every step."""
    with torch.inference_mode(False):
        mean = torch.tensor(preprocess.mean, device=device)[:, None, None]
        std = torch.tensor(preprocess.std, device=device)[:, None, None]
    return mean, std


SIGNED: Final = Preprocess(mean=(1.0,), scale=127.5)
"""Bytes to [-1, 1]: of backbones that declare nothing, of TensorFlow's networks and of GoogLeNet."""

IMAGENET: Final = Preprocess(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
"""torchvision's, and so that of most weights."""
