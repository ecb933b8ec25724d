"""GoogLeNet (Inception v1), the backbone of SVMax."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge
from torch import Tensor

from workers.backbones import ConvNet, check_side
from workers.backbones._torchvision import network, trunk
from workers.data.augmentation import SIGNED

_AUXILIARY = ("aux1", "aux2")


class Googlenet(ConvNet):
    """torchvision's GoogLeNet (with batch norm) without its classifiers: 1024 features. Input: RGB in [-1, 1].

    As its weights, which come from TensorFlow, want it; torchvision gets there by its `transform_input`. Its "5x5"
    branches are 3x3, in the weights too.
    """

    label = "GoogLeNet"
    paper = "Szegedy et al., CVPR 2015"
    version = 1

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        channels: int,
        side: int,
        root: Path,
        *,
        pool: Literal["avg", "max", "avg+max"] = "avg",
        freeze_bn: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, pool, pretrained=pretrained, weights=weights)
        check_side("googlenet", resize or side, least=15)
        # torchvision draws its weights only where none come from its hub.
        options = {} if pretrained else {"aux_logits": False, "init_weights": weights is None}
        net, self.origin = network("googlenet", pretrained=pretrained, root=root, **options)
        self.net = trunk(net, without=("avgpool", "dropout", "fc", *_AUXILIARY))
        self.features = 1024
        self.preprocess = replace(SIGNED, mean=(1.0, 1.0, 1.0), side=resize)
        if weights is not None:
            self.fill_from(root, weights, net=self.net, unused=("fc.", "aux1.", "aux2."))
        if freeze_bn:
            self.freeze_batch_norm()

    def maps(self, images: Tensor) -> Tensor:
        """Images [b, 3, h, w] to maps [b, 1024, h/32, w/32]."""
        maps: Tensor = self.net(images)
        return maps
