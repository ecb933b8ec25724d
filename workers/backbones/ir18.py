"""InsightFace's smallest residual network for faces."""

from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Lt

from workers.backbones._shared import FaceResNet


class Ir18(FaceResNet):
    """18 layers without squeeze and excitation up to the last maps: each value, after batch norm and dropout.

    With the head `{name: fc_bn, gain: false, init: kaiming}` it is InsightFace's network with output E. Input: RGB in
    [-1, 1], 112 pixels a side in its papers; other sides give other numbers of features.
    """

    label = "IR-18"
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
        super().__init__(
            channels, side, root, units=(2, 2, 2, 2), squeeze=False, dropout=dropout, weights=weights, resize=resize
        )
