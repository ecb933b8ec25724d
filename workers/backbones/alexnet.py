"""AlexNet, of SVMax's representation counting."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from torch import Tensor

from workers.backbones import ConvNet, check_side
from workers.backbones._torchvision import network, trunk
from workers.data.preprocess import IMAGENET


class Alexnet(ConvNet):
    """torchvision's AlexNet up to its last convolution: 256 features. Input: RGB by ImageNet's mean and deviation."""

    label = "AlexNet"
    paper = "Krizhevsky, 2014"
    version = 1

    def __init__(
        self,
        channels: int,
        side: int,
        root: Path,
        *,
        pool: Literal["avg", "max", "avg+max"] = "avg",
        pretrained: bool = False,
        weights: str | None = None,
        resize: int | None = None,
    ) -> None:
        super().__init__(channels, pool, pretrained=pretrained, weights=weights)
        check_side("alexnet", resize or side, least=63)
        net, self.origin = network("alexnet", pretrained=pretrained, root=root)
        self.net = trunk(net, without=("avgpool", "classifier"))
        self.features = 256
        self.preprocess = replace(IMAGENET, side=resize)
        if weights is not None:
            self.fill_from(root, weights, net=self.net, unused=("classifier.",))

    def maps(self, images: Tensor) -> Tensor:
        """Images [b, 3, h, w] to maps [b, 256, h', w']."""
        maps: Tensor = self.net(images)
        return maps
