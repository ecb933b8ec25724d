"""ResNet-50, of SVMax and of SEC's self-supervised tables."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from workers.backbones import ConvNet
from workers.backbones._shared import residual
from workers.data.augmentation import IMAGENET


class Resnet50(ConvNet):
    """torchvision's ResNet-50 without its classifier: 2048 features. Input: RGB by ImageNet's mean and deviation.

    `stem: cifar` begins with one 3x3 convolution that keeps the side, and no pooling, as SimCLR does on CIFAR.
    """

    label = "ResNet-50"
    paper = "He et al., CVPR 2016"
    version = 1
    added = ("stem", "gem_p")
    only_where = {"gem_p": {"pool": "gem"}}

    def __init__(  # noqa: PLR0913 - each is one choice of the network
        self,
        channels: int,
        root: Path,
        *,
        stem: Literal["imagenet", "cifar"] = "imagenet",
        pool: Literal["avg", "max", "avg+max", "gem"] = "avg",
        gem_p: Annotated[float, Gt(0)] | None = None,
        freeze_bn: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, pool, gem_p=gem_p, pretrained=pretrained, weights=weights)
        self.net, self.origin = residual("resnet50", stem, pretrained=pretrained, root=root)
        self.features = 2048
        self.preprocess = replace(IMAGENET, side=resize)
        self.load(root, weights, unused=("fc.",), freeze_bn=freeze_bn)
