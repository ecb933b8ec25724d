"""ResNet-18, for self-supervised learning on small images."""

from workers.backbones._shared import ResNet


class Resnet18(ResNet):
    """torchvision's ResNet-18 without its classifier: 512 features. Input: RGB by ImageNet's mean and deviation.

    `stem: cifar` begins with one 3x3 convolution that keeps the side, and no pooling, as SimCLR does on CIFAR.
    """

    label = "ResNet-18"
    paper = "He et al., CVPR 2016"
    added = ("gem_p",)
    _network = "resnet18"
