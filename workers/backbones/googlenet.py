"""GoogLeNet (Inception v1), the backbone of SVMax."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge

from workers.backbones import ConvNet, check_side
from workers.backbones._shared import network, trunk
from workers.data.augmentation import SIGNED


class Googlenet(ConvNet):
    """torchvision's GoogLeNet (with batch norm) without its classifiers: 1024 features. Input: RGB in [-1, 1].

    This is the input of its weights, which come from TensorFlow; torchvision converts to it by `transform_input`. Its
    "5x5" branches are 3x3, as in the weights.
    """

    label = "GoogLeNet"
    paper = "Szegedy et al., CVPR 2015"

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
        self.net = trunk(net, without=("avgpool", "dropout", "fc", "aux1", "aux2"))
        self.features = 1024
        self.preprocess = replace(SIGNED, mean=(1.0, 1.0, 1.0), side=resize)
        self.load(root, weights, unused=("fc.", "aux1.", "aux2."), freeze_bn=freeze_bn)
