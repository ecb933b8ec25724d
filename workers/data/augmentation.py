"""Augmentation and preprocessing of images: crops, flips, colours, normalization."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from workers.data.images import onto

_ATTEMPTS = 10  # at a crop of the wanted area and shape, before the largest one of the centre is taken (torchvision)
_CHUNK = 64  # images resampled at a time, four times as many on a GPU; bounds the float32 intermediates
_GREY = (0.299, 0.587, 0.114)  # ITU-R 601, as PIL's "L"


class Augment:
    """Augments images whose shorter side is `stored` pixels, by a preset of crops, flips and colours.

    Crops have `crop` pixels a side, by default those of the preset, at most `stored`. Raises ValueError for an unknown
    preset or a crop larger than the images.
    """

    def __init__(self, preset: str, *, stored: int, crop: int | None = None) -> None:
        if preset not in PRESETS:
            raise ValueError(f"augment: no preset named {preset!r}; expected one of {', '.join(PRESETS)}")
        if crop is not None and not 1 <= crop <= stored:
            raise ValueError(f"augment.crop: {crop} does not fit in images whose shorter side is {stored}")
        self.preset = PRESETS[preset]
        self.side = crop or min(self.preset.crop or stored, stored)

    def test(self, images: Tensor, sizes: Tensor | None = None) -> Tensor:
        """The centre of each image, uint8 [b, c, side, side], as torchvision's CenterCrop."""
        sizes = _whole(images) if sizes is None else sizes.cpu()
        # Python's round, half to even, is what torchvision uses.
        corners = [(round((h - self.side) / 2), round((w - self.side) / 2)) for h, w in sizes.tolist()]
        if min(map(min, corners), default=0) < 0:
            raise ValueError(f"augment: an image is smaller than the crop of {self.side} pixels")
        if len(set(corners)) == 1:
            (top, left), *_ = corners
            return images[..., top : top + self.side, left : left + self.side]
        pairs = zip(images, corners, strict=True)
        cut = [image[:, top : top + self.side, left : left + self.side] for image, (top, left) in pairs]
        return torch.stack(cut) if cut else images[..., : self.side, : self.side]

    @torch.no_grad()
    def train(self, images: Tensor, generator: torch.Generator, sizes: Tensor | None = None) -> Tensor:
        """Augments each image with random parameters of its own; the same images and generator state give the same
        bits.

        Equals PIL's crop, resize (bilinear, antialiased) and flip within one of 255 levels. Float32 [b, c, side, side],
        or the uint8 of `test` if the preset has no random crop.
        """
        preset = self.preset
        if preset.scale is None:
            centre = self.test(images, sizes)
            return (
                mirrored(centre, torch.rand(len(images), generator=generator) < preset.flip) if preset.flip else centre
            )
        sizes = _whole(images) if sizes is None else sizes.cpu()
        drawn = torch.rand(len(images), 2 * _ATTEMPTS + 3, generator=generator, dtype=torch.float64)
        boxes = random_boxes(sizes, preset.scale, preset.ratio, drawn[:, 1:])
        flipped = drawn[:, 0] < preset.flip
        # Under AMP the products below would be of 8 bits.
        with torch.autocast(images.device.type, enabled=False):
            result = resized_crop(images, boxes, flipped, self.side)
            if preset.jitter or preset.grey:
                chance = torch.rand(len(images), 10, generator=generator, dtype=torch.float64)
                result = distorted(result, preset, chance)
        return result


@dataclass(frozen=True)
class Preset:
    """An augmentation preset: how training images are cropped, flipped and coloured."""

    crop: int  # the side of crops in pixels; 0 means the whole stored side
    scale: tuple[float, float] | None = None  # the least and largest share of the area of a crop; None crops the centre
    ratio: tuple[float, float] = (3 / 4, 4 / 3)  # the least and largest width / height of a crop
    flip: float = 0.0  # the probability of a horizontal flip
    jitter: float = 0.0
    """The strength s of SimCLR's colour distortion: brightness, contrast and saturation by .8 s, hue by .2 s."""
    distort: float = 0.8  # the probability of the colour distortion
    grey: float = 0.0  # the probability of conversion to grey


PRESETS: Final = {
    "none": Preset(crop=0),
    "flip": Preset(crop=0, flip=0.5),  # InsightFace, whose images are cropped and aligned
    "crop_flip": Preset(crop=227, scale=(0.16, 1.0), flip=0.5),  # SEC, MLRC
    "proxy_anchor": Preset(crop=224, scale=(0.08, 1.0), flip=0.5),  # Proxy-Anchor, Proxy-ISA: torchvision's defaults
    "simclr": Preset(crop=224, scale=(0.08, 1.0), flip=0.5, jitter=0.5, grey=0.2),  # SimCLR on CIFAR: no blur
}


def _whole(images: Tensor) -> Tensor:
    """The sizes [b, 2] of images without padding."""
    return torch.tensor(images.shape[-2:]).expand(len(images), 2)


def mirrored(images: Tensor, which: Tensor) -> Tensor:
    """Flips images [b, c, h, w] from left to right where `which` [b] is true."""
    return torch.where(onto(images.device, which)[:, None, None, None], images.flip(-1), images)


class Boxes(NamedTuple):
    """The crop boxes of images in pixels, int64 [b] each."""

    top: Tensor
    left: Tensor
    height: Tensor
    width: Tensor


def random_boxes(sizes: Tensor, scale: tuple[float, float], ratio: tuple[float, float], drawn: Tensor) -> Boxes:
    """Random crop boxes as of torchvision's RandomResizedCrop, from uniform numbers `drawn` [b, 22]."""
    height, width = sizes[:, 0, None].double(), sizes[:, 1, None].double()
    share = scale[0] + (scale[1] - scale[0]) * drawn[:, :_ATTEMPTS]
    low, high = math.log(ratio[0]), math.log(ratio[1])
    shape = (low + (high - low) * drawn[:, _ATTEMPTS : 2 * _ATTEMPTS]).exp()
    area = height * width * share
    # The largest crop of the centre with an allowed shape stands last: it always fits.
    whole = width / height
    last_width = torch.where(whole > ratio[1], (height * ratio[1]).round(), width)
    last_height = torch.where(whole < ratio[0], (width / ratio[0]).round(), height)
    widths = torch.cat([(area * shape).sqrt().round(), last_width], dim=1)
    heights = torch.cat([(area / shape).sqrt().round(), last_height], dim=1)
    fits = (widths > 0) & (widths <= width) & (heights > 0) & (heights <= height)
    fits[:, -1] = True
    chosen = fits.int().argmax(dim=1, keepdim=True)  # the first that fits
    w, h = widths.gather(1, chosen)[:, 0], heights.gather(1, chosen)[:, 0]
    room = torch.stack([height[:, 0] - h, width[:, 0] - w], dim=1)
    corner = torch.where(chosen == _ATTEMPTS, (room / 2).floor(), (drawn[:, -2:] * (room + 1)).floor())
    return Boxes(corner[:, 0].long(), corner[:, 1].long(), h.long(), w.long())


def resized_crop(images: Tensor, boxes: Boxes, flipped: Tensor, side: int) -> Tensor:
    """The boxes of images uint8 [b, c, h, w], resized to float32 [b, c, side, side] and flipped where `flipped` [b] is
    true.

    Two matrix products with the weights of PIL's bilinear filter, which widens as an image shrinks. Unlike PIL, this
    does not round to bytes.
    """
    done = []
    places = onto(images.device, torch.stack([*boxes, flipped.long()]))
    chunk = 4 * _CHUNK if images.is_cuda else _CHUNK
    for first in range(0, len(images), chunk):
        part = slice(first, first + chunk)
        pixels = images[part].float()
        b, c, h, w = pixels.shape
        top, left, height, width, mirror = places[:, part]
        across = _filter(left, width, side, w)
        across = torch.where(mirror.bool()[:, None, None], across.flip(1), across)
        down = _filter(top, height, side, h)
        rows = torch.bmm(pixels.view(b, c * h, w), across.transpose(1, 2))  # [b, c h, side]
        rows = rows.view(b, c, h, side).transpose(1, 2).reshape(b, h, c * side)
        done.append(torch.bmm(down, rows).view(b, side, c, side).transpose(1, 2))
    return torch.cat(done) if done else images.new_empty(0, images.shape[1], side, side, dtype=torch.float32)


def _filter(start: Tensor, length: Tensor, side: int, extent: int) -> Tensor:
    """The weights [b, side, extent] by which `side` pixels are computed from `length` pixels from `start` on."""
    scale = length.float()[:, None] / side
    centre = start[:, None] + (torch.arange(side, device=start.device) + 0.5) * scale  # [b, side]
    place = torch.arange(extent, device=start.device)
    distance = (place + 0.5 - centre[..., None]).abs() / scale.clamp(min=1)[..., None]
    weights = (1 - distance).clamp(min=0)
    inside = (place >= start[:, None]) & (place < (start + length)[:, None])
    weights *= inside[:, None, :]
    return weights / weights.sum(dim=2, keepdim=True)


def distorted(images: Tensor, preset: Preset, drawn: Tensor) -> Tensor:
    """SimCLR's colour distortion of images [b, c, h, w] in 0..255, from uniform numbers `drawn` [b, 10].

    Brightness, contrast, saturation and hue in a random order, then grey; grey images only get brightness and contrast.
    As torchvision's on floats; PIL rounds to bytes after each.
    """
    strength = 0.8 * preset.jitter
    factors = 1 + strength * (2 * drawn[:, 1:4] - 1)
    shift = 0.2 * preset.jitter * (2 * drawn[:, 4] - 1)
    amounts = onto(images.device, torch.cat([factors, shift[:, None]], dim=1).to(images.dtype))
    order = drawn[:, 5:9].argsort(dim=1)
    applied = drawn[:, 0] < preset.distort
    operations = (_brightness, _contrast, _saturation, _hue)[: 4 if images.shape[1] == 3 else 2]
    bleaching = drawn[:, 9] < preset.grey if images.shape[1] == 3 else torch.zeros_like(applied)
    result = images.clone()
    for place, (number, operation) in product(range(4), enumerate(operations)):
        chosen = onto(images.device, (applied & (order[:, place] == number)).nonzero()[:, 0])
        if len(chosen):
            result[chosen] = operation(result[chosen], amounts[chosen, number, None, None, None])
    bleached = onto(images.device, bleaching.nonzero()[:, 0])
    if len(bleached):
        result[bleached] = _luminance(result[bleached]).expand(-1, 3, -1, -1)
    return result


def _brightness(images: Tensor, factor: Tensor) -> Tensor:
    return _blend(images, 0.0, factor)


def _blend(images: Tensor, other: Tensor | float, factor: Tensor) -> Tensor:
    return (factor * images + (1 - factor) * other).clamp(0, 255)


def _contrast(images: Tensor, factor: Tensor) -> Tensor:
    return _blend(images, _luminance(images).mean(dim=(1, 2, 3), keepdim=True), factor)


def _luminance(images: Tensor) -> Tensor:
    """The grey values of images [b, c, h, w], [b, 1, h, w]."""
    if images.shape[1] != 3:
        return images
    red, green, blue = images.unbind(1)
    return (_GREY[0] * red + _GREY[1] * green + _GREY[2] * blue)[:, None]


def _saturation(images: Tensor, factor: Tensor) -> Tensor:
    return _blend(images, _luminance(images), factor)


def _hue(images: Tensor, shift: Tensor) -> Tensor:
    """Shifts the hue by `shift` of a full turn."""
    red, green, blue = images.unbind(1)
    value, spread = images.amax(dim=1), images.amax(dim=1) - images.amin(dim=1)
    safe = spread.clamp(min=1e-6)
    other = torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe)
    hue = torch.where(value == red, (green - blue) / safe, other) + 6 * shift[..., 0]
    # From hue to colour without a table of cases: channel n falls and rises with its distance from hue n.
    offset = torch.arange(5.0, 0.0, -2.0, device=images.device)[:, None, None]
    along = torch.remainder(offset + hue[:, None], 6)
    return value[:, None] - spread[:, None] * torch.minimum(along, 4 - along).clamp(0, 1)


@dataclass(frozen=True)
class Preprocess:
    """Normalizes images to (pixel / scale - mean) / std, after an optional resize to `side` and conversion of RGB to
    BGR.

    A backbone declares it as its attribute `preprocess`; the embedder applies it to batches on their device.
    """

    mean: tuple[float, ...]
    """For each channel in the backbone's order, after the division by `scale`; a single value is for all channels."""
    std: tuple[float, ...] = (1.0,)
    scale: float = 255.0
    bgr: bool = False  # whether the backbone takes blue first; images have red first
    side: int | None = None  # the side to which images are resized, bilinear and antialiased; None keeps their size

    def __post_init__(self) -> None:
        if not self.mean or len(self.std) not in {1, len(self.mean)}:
            raise ValueError(f"preprocess: {len(self.mean)} means and {len(self.std)} deviations do not fit together")
        if min(*self.std, self.scale) <= 0:
            raise ValueError("preprocess: scale and deviations must be above 0")
        if self.side is not None and self.side < 1:
            raise ValueError(f"preprocess: images cannot be resized to a side of {self.side}")

    def __call__(self, images: Tensor) -> Tensor:
        """Preprocesses images [b, c, h, w] of values 0..255 to float32; grey images get the channels of `mean`."""
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
    """Mean and deviation [c, 1, 1], copied to a device only once."""
    with torch.inference_mode(False):
        mean = torch.tensor(preprocess.mean, device=device)[:, None, None]
        std = torch.tensor(preprocess.std, device=device)[:, None, None]
    return mean, std


SIGNED: Final = Preprocess(mean=(1.0,), scale=127.5)
"""Bytes to [-1, 1]: the default of backbones, and for TensorFlow's networks and GoogLeNet."""

IMAGENET: Final = Preprocess(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
"""torchvision's normalization, and that of most weights."""
