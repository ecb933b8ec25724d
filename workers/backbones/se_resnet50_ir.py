"""SE-ResNet50-IR, of SEC's face recognition."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Lt
from torch import Tensor, nn

from workers.backbones import ConvNet
from workers.backbones._improved_residual import features, network
from workers.data.augmentation import Preprocess


class SeResnet50Ir(ConvNet):
    """50 layers with squeeze and excitation up to the last maps: each value, after batch norm and dropout.

    With the head `{name: fc_bn, gain: false, init: kaiming}` it is InsightFace's network with output E. Input: RGB in
    [-1, 1], 112 pixels a side in its papers; other sides give other numbers of features.
    """

    label = "SE-ResNet50-IR"
    paper = "Deng et al. 2019 (ArcFace)"
    version = 1

    def __init__(
        self,
        channels: int,
        side: int,
        root: Path,
        *,
        dropout: Annotated[float, Ge(0), Lt(1)] = 0.4,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, "avg")
        self.net = network((3, 4, 14, 3), squeeze=True)
        self.dropout = nn.Dropout(dropout)
        self.features = features(resize or side)
        self.preprocess = Preprocess(mean=(127.5 / 128,) * 3, scale=128.0, side=resize)
        if weights is not None:
            self.fill_from(root, weights, net=self.net, unused=("fc.", "features."))

    def maps(self, images: Tensor) -> Tensor:
        """Images [b, 3, h, w] to maps [b, 512, h/16, w/16], rounded up."""
        maps: Tensor = self.net(images)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        """Preprocessed images [b, 3, h, w] to features [b, features]."""
        values: Tensor = self.dropout(self.maps(images)).flatten(1)
        return values
