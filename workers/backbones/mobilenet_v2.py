"""MobileNet v2, of SVMax's ablations."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from torch import nn

from workers.backbones import ConvNet
from workers.backbones._shared import network, pad_same, trunk
from workers.data.augmentation import IMAGENET, SIGNED
from workers.data.weights import WeightsError


class MobilenetV2(ConvNet):
    """torchvision's MobileNet v2 without its classifier: 1280 features (more where `width` is above 1).

    `flavour: torchvision` pads evenly and takes ImageNet's mean and deviation; `tensorflow` has SAME padding, batch
    norm with epsilon 1e-3 and input in [-1, 1]. Weights of one flavour are no use to the other.
    """

    label = "MobileNetV2"
    paper = "Sandler et al., CVPR 2018"
    known_weights = {"mobilenet_v2_1.0_224_ptq.pt": "993d9c3809130f3b702b71f5583980eccedaaade8c913f404de331085d3c2675"}

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        channels: int,
        root: Path,
        *,
        flavour: Literal["torchvision", "tensorflow"] = "torchvision",
        width: Annotated[float, Gt(0), Le(4)] = 1.0,
        pool: Literal["avg", "max", "avg+max"] = "avg",
        freeze_bn: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, pool, pretrained=pretrained, weights=weights)
        tensorflow = flavour == "tensorflow"
        if pretrained and (tensorflow or width != 1):
            raise ValueError("mobilenet_v2: torchvision's hub has weights of `flavour: torchvision` and width 1 only")
        options: dict[str, Any] = {"norm_layer": partial(nn.BatchNorm2d, eps=1e-3)} if tensorflow else {}
        net, self.origin = network("mobilenet_v2", pretrained=pretrained, root=root, width_mult=width, **options)
        self.features = int(net.last_channel)  # type: ignore[arg-type]
        self.net = trunk(net, without=("classifier",))
        if tensorflow:
            pad_same(self.net)
        ours = replace(SIGNED, mean=(1.0, 1.0, 1.0)) if tensorflow else IMAGENET
        self.preprocess = replace(ours, side=resize)
        meta = self.load(root, weights, unused=("classifier.",), known=self.known_weights, freeze_bn=freeze_bn)
        if meta.get("padding") == "tf_same" and not tensorflow:
            raise WeightsError(f"weights {weights} are TensorFlow's: write `flavour: tensorflow`")
