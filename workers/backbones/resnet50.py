"""ResNet-50, of SVMax and of SEC's self-supervised tables."""

from workers.backbones._shared import ResNet


class Resnet50(ResNet):
    """torchvision's ResNet-50 without its classifier: 2048 features. Input: RGB by ImageNet's mean and deviation.

    `stem: cifar` begins with one 3x3 convolution that keeps the side, and no pooling, as SimCLR does on CIFAR.
    """

    label = "ResNet-50"
    paper = "He et al., CVPR 2016"
    added = ("stem", "gem_p")
    _network = "resnet50"
