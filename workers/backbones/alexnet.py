"""AlexNet, of SVMax's representation counting."""

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge
from torch import Tensor, nn

from workers.backbones import ConvNet, averaged, check_side, convolved
from workers.backbones._shared import network, trunk
from workers.data.augmentation import IMAGENET

_CONNECTED: Final = frozenset({"1", "2", "4", "5"})
"""Of torchvision's classifier: two linear layers, each with its ReLU, and neither dropout nor the classes."""
_SIDE: Final = 6


class Alexnet(ConvNet):
    """torchvision's AlexNet up to its last convolution: 256 features. Input: RGB by ImageNet's mean and deviation.

    `connected` gives the output of its two fully connected layers of 4,096 on the maps, averaged to 6 x 6 as there,
    without dropout; then `pool` has no effect.
    """

    label = "AlexNet"
    paper = "Krizhevsky, 2014"
    added = ("connected",)

    def __init__(  # noqa: PLR0913 - each is one choice of the network
        self,
        channels: int,
        side: int,
        root: Path,
        *,
        pool: Literal["avg", "max", "avg+max"] = "avg",
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
        connected: bool = False,
    ) -> None:
        super().__init__(channels, pool, pretrained=pretrained, weights=weights)
        check_side("alexnet", resize or side, least=63)
        net, self.origin = network("alexnet", pretrained=pretrained, root=root)
        self.net, unused = trunk(net, without=("avgpool", "classifier")), "classifier."
        self.features, self._connected = 256, connected
        if connected:
            layers = [
                (name, layer) for name, layer in net.get_submodule("classifier").named_children() if name in _CONNECTED
            ]
            self.net.add_module("classifier", nn.Sequential(OrderedDict(layers)))
            self.features, unused = 4096, "classifier.6."
        self.preprocess = replace(IMAGENET, side=resize)
        self.load(root, weights, unused=(unused,))

    def maps(self, images: Tensor) -> Tensor:
        """Computes the maps [b, 256, h', w'] of images [b, 3, h, w]."""
        maps: Tensor = self.net.get_submodule("features")(images)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        if not self._connected:
            return super().forward(images)
        features: Tensor = self.net.get_submodule("classifier")(averaged(self.maps(images), _SIDE).flatten(1))
        return features

    def convolved(self, images: Tensor) -> dict[str, Tensor]:
        return convolved(self.net.get_submodule("features"), images)
