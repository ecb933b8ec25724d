"""SE-ResNet50-IR, of SEC's face recognition."""

from workers.backbones._shared import FaceResNet


class SeResnet50Ir(FaceResNet):
    """50 layers with squeeze and excitation up to the last maps: each value, after batch norm and dropout.

    With the head `{name: fc_bn, gain: false, init: kaiming}` it is InsightFace's network with output E. Input: RGB in
    [-1, 1], 112 pixels a side in its papers; other sides give other numbers of features.
    """

    label = "SE-ResNet50-IR"
    paper = "Deng et al. 2019 (ArcFace)"
    _units = (3, 4, 14, 3)
    _squeeze = True
