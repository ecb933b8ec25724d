"""InsightFace's smallest residual network for faces."""

from workers.backbones._shared import FaceResNet


class Ir18(FaceResNet):
    """18 layers without squeeze and excitation up to the last maps: each value, after batch norm and dropout.

    With the head `{name: fc_bn, gain: false, init: kaiming}` it is InsightFace's network with output E. Input: RGB in
    [-1, 1], 112 pixels a side in its papers; other sides give other numbers of features.
    """

    label = "IR-18"
    paper = "Deng et al. 2019 (ArcFace)"
    _units = (2, 2, 2, 2)
    _squeeze = False
