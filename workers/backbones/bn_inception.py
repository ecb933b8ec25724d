"""BN-Inception (Inception v2), the backbone of SEC, Proxy-Anchor, Proxy-ISA and MLRC, which torchvision lacks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn
from torch.nn import functional

from workers.backbones import ConvNet
from workers.data.augmentation import Preprocess
from workers.data.weights import fill, from_hub, into_cache

_URL: Final = "http://data.lip6.fr/cadene/pretrainedmodels/bn_inception-52deb4733.pth"
"""The origin of pretrained weights, also if they come from the data root."""


@dataclass(frozen=True)
class _Block:
    """The widths of the concatenated branches of an inception block; 0 means that it lacks the branch."""

    one: int  # 1x1
    three: tuple[int, int]  # 1x1, then 3x3
    double: tuple[int, int]  # 1x1, then two 3x3 of the second width
    project: int  # 3x3 pooling, then 1x1; with 0 the pooled input itself, and the block halves the side

    @property
    def width(self) -> int:
        return self.one + self.three[1] + self.double[1] + self.project


_STEM: Final = 192
_BLOCKS: Final = {
    "3a": _Block(64, (64, 64), (64, 96), 32),
    "3b": _Block(64, (64, 96), (64, 96), 64),
    "3c": _Block(0, (128, 160), (64, 96), 0),
    "4a": _Block(224, (64, 96), (96, 128), 128),
    "4b": _Block(192, (96, 128), (96, 128), 128),
    "4c": _Block(160, (128, 160), (128, 160), 128),
    "4d": _Block(96, (128, 192), (160, 192), 128),
    "4e": _Block(0, (128, 192), (192, 256), 0),
    "5a": _Block(352, (192, 320), (160, 224), 128),
    "5b": _Block(352, (192, 320), (192, 224), 128),
}  # fmt: skip
_MAX_POOLED: Final = "5b"  # the only block that keeps the side and uses max pooling


class BnInception(ConvNet):
    """Inception with batch norm, as converted from Caffe: 1024 features.

    The names of its parameters are those of the widely used file `bn_inception-52deb4733.pth`, which `weights` or
    `pretrained` loads. Input: BGR, 0..255 less a mean by channel, given in the channel order: 104, 117, 128 as
    published with the file (Proxy-Anchor, Proxy-ISA), 104, 117, 123 in SEC's code. SEC and PyTorch average batch
    statistics with momentum .1, the file's publishers with .9; only an unfrozen batch norm is touched by it. The side
    must be even before each halving block: a multiple of 32 is, and so are 224 and 227.
    """

    label = "BN-Inception"
    paper = "Ioffe and Szegedy, ICML 2015"
    added = ("gem_p",)
    only_where = {"gem_p": {"pool": "gem"}}

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        channels: int,
        side: int,
        root: Path,
        *,
        pool: Literal["avg", "max", "avg+max", "gem"] = "avg",
        gem_p: Annotated[float, Gt(0)] | None = None,
        freeze_bn: bool = False,
        bn_momentum: Annotated[float, Ge(0), Le(1)] = 0.1,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
        channel_order: Literal["bgr", "rgb"] = "bgr",
        mean: tuple[float, ...] = (104.0, 117.0, 128.0),
    ) -> None:
        super().__init__(channels, pool, gem_p=gem_p, pretrained=pretrained, weights=weights)
        if len(mean) != 3:
            raise ValueError(f"bn_inception.mean: expected three values, one for each channel; found {len(mean)}")
        _check_side(resize or side)
        self.features = 1024
        self.preprocess = Preprocess(mean=mean, scale=1.0, bgr=channel_order == "bgr", side=resize)
        for name, shape in _convolutions():
            wide, width, kernel, stride = shape
            self.add_module(name, nn.Conv2d(wide, width, kernel, stride, padding=kernel // 2))
            self.add_module(f"{name}_bn", nn.BatchNorm2d(width, momentum=bn_momentum))
        if pretrained:
            self._fetch(root)
        self.load(root, weights, unused=("last_linear.",), freeze_bn=freeze_bn)

    def _fetch(self, root: Path) -> None:
        def fetch() -> dict[str, Tensor]:
            into_cache(root, "bn_inception")
            return torch.hub.load_state_dict_from_url(_URL, map_location="cpu", check_hash=True, weights_only=True)

        fill(self, from_hub("the weights of BN-Inception", fetch, "bn_inception"), _URL, unused=("last_linear.",))
        self.origin = _URL

    def maps(self, images: Tensor) -> Tensor:
        """Computes the maps [b, 1024, h/32, w/32] of images [b, 3, h, w]."""
        maps = _halved(self._unit(images, "conv1_7x7_s2"))
        maps = self._unit(self._unit(maps, "conv2_3x3_reduce"), "conv2_3x3")
        maps = _halved(maps)
        for name, block in _BLOCKS.items():
            maps = self._block(maps, name, block)
        return maps

    def _unit(self, maps: Tensor, name: str) -> Tensor:
        normalized = self.get_submodule(f"{name}_bn")(self.get_submodule(name)(maps))
        return functional.relu(normalized, inplace=True)

    def _block(self, maps: Tensor, name: str, block: _Block) -> Tensor:
        prefix = f"inception_{name}_"
        branches = [self._unit(maps, f"{prefix}1x1")] if block.one else []
        branches.append(self._unit(self._unit(maps, f"{prefix}3x3_reduce"), f"{prefix}3x3"))
        double = self._unit(maps, f"{prefix}double_3x3_reduce")
        branches.append(self._unit(self._unit(double, f"{prefix}double_3x3_1"), f"{prefix}double_3x3_2"))
        if not block.project:
            branches.append(_halved(maps))
        elif name == _MAX_POOLED:
            branches.append(self._unit(functional.max_pool2d(maps, 3, 1, 1), f"{prefix}pool_proj"))
        else:
            branches.append(self._unit(functional.avg_pool2d(maps, 3, 1, 1), f"{prefix}pool_proj"))
        return torch.cat(branches, dim=1)


def _convolutions() -> Iterator[tuple[str, tuple[int, int, int, int]]]:
    """The name of each convolution, and its (channels in, channels out, kernel, stride)."""
    yield "conv1_7x7_s2", (3, 64, 7, 2)
    yield "conv2_3x3_reduce", (64, 64, 1, 1)
    yield "conv2_3x3", (64, _STEM, 3, 1)
    wide = _STEM
    for name, block in _BLOCKS.items():
        prefix, stride = f"inception_{name}_", 1 if block.project else 2
        if block.one:
            yield f"{prefix}1x1", (wide, block.one, 1, 1)
        yield f"{prefix}3x3_reduce", (wide, block.three[0], 1, 1)
        yield f"{prefix}3x3", (*block.three, 3, stride)
        yield f"{prefix}double_3x3_reduce", (wide, block.double[0], 1, 1)
        yield f"{prefix}double_3x3_1", (*block.double, 3, 1)
        yield f"{prefix}double_3x3_2", (block.double[1], block.double[1], 3, stride)
        if block.project:
            yield f"{prefix}pool_proj", (wide, block.project, 1, 1)
        wide = block.width if block.project else wide + block.width


def _halved(maps: Tensor) -> Tensor:
    return functional.max_pool2d(maps, 3, 2, ceil_mode=True)


def _check_side(side: int) -> None:
    """Refuse sides that are odd before a halving block: its strided convolution rounds up and its pooling down."""
    left = (side + 1) // 2 // 2 // 2  # conv1, and two poolings of 3x3 with stride 2
    if left < 4 or left % 4:
        below, above = side // 32 * 32, side // 32 * 32 + 32
        near = f"{below} and {above}" if below else str(above)
        raise ValueError(f"bn_inception cannot take images of side {side}; near it are {near}: set `resize`")
