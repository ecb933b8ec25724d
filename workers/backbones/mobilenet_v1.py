"""MobileNet v1 as TensorFlow trains it: a pretrained network that a CPU can train."""

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Le
from torch import nn

from workers.backbones import ConvNet
from workers.backbones._shared import SameConv2d
from workers.data.augmentation import SIGNED

_STEM: Final = 32
_BLOCKS: Final = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels and stride of each depthwise separable convolution, at width 1."""


class MobilenetV1(ConvNet):
    """MobileNet v1 without its classifier: 1024 x `width` features. Input: RGB in [-1, 1].

    SAME padding, ReLU6 and batch norm with epsilon 1e-3, all as in TensorFlow's weights; no library has a hub for it.
    """

    label = "MobileNetV1"
    paper = "Howard et al., 2017"
    known_weights = {"mobilenet_v1_0.25_128_qat.pt": "95784845b8179735a400c8abb9d060b4ed4b9c2673eab85311225a2e6d0a4e56"}

    def __init__(
        self,
        channels: int,
        root: Path,
        *,
        width: Annotated[float, Gt(0), Le(4)] = 1.0,
        pool: Literal["avg", "max", "avg+max"] = "avg",
        freeze_bn: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, pool)
        before = _scaled(_STEM, width)
        layers = [_unit(3, before, kernel=3, stride=2)]
        for at_one, stride in _BLOCKS:
            after = _scaled(at_one, width)
            layers += [_unit(before, before, kernel=3, stride=stride, groups=before), _unit(before, after)]
            before = after
        # One level more than needed, for the names of torchvision's mobilenet_v2 and of the files.
        self.net = nn.Sequential(OrderedDict(features=nn.Sequential(*layers)))
        self.features = before
        self.preprocess = replace(SIGNED, mean=(1.0, 1.0, 1.0), side=resize)
        self.load(root, weights, unused=("classifier.",), known=self.known_weights, freeze_bn=freeze_bn)


def _unit(wide: int, width: int, *, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = SameConv2d(wide, width, kernel, stride, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width, eps=1e-3), nn.ReLU6(inplace=True))


def _scaled(channels: int, width: float) -> int:
    """A share of the channels, at least 8, as in TensorFlow."""
    return max(int(channels * width), 8)
