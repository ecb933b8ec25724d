"""Networks of torchvision, with its pretrained weights where asked for."""

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from torch import nn
from torchvision.models import get_model

from workers.data.weights import from_hub, into_cache

PUBLISHED: Final = "IMAGENET1K_V1"
"""torchvision's first weights of each network: those that the papers started from."""


def network(name: str, *, pretrained: bool, root: Path, **options: Any) -> tuple[nn.Module, str]:
    """The network and the origin of its weights; raises WeightsError where the hub is out of reach.

    Weights are those in the data root, where they lie there, or in the library's cache.
    """
    if not pretrained:
        return get_model(name, weights=None, **options), "random"

    def fetch() -> nn.Module:
        into_cache(root, name)
        made: nn.Module = get_model(name, weights=PUBLISHED, **options)
        return made

    net = from_hub(f"torchvision's weights of {name}", fetch, name)
    return net, f"torchvision {name} {PUBLISHED}"


def trunk(net: nn.Module, without: Iterable[str]) -> nn.Sequential:
    """The children of `net` in their order and with their names, but for those `without`."""
    left_out = set(without)
    children = [(name, child) for name, child in net.named_children() if name not in left_out]
    return nn.Sequential(OrderedDict(children))


def residual(name: str, stem: str, *, pretrained: bool, root: Path) -> tuple[nn.Sequential, str]:
    """The ResNet `name` without pooling and classifier, and the origin of its weights; raises WeightsError.

    With the stem `cifar` its first maps are as large as the images. Raises ValueError where pretrained weights would be
    cut out with the stem that they were trained with.
    """
    if stem == "cifar" and pretrained:
        raise ValueError("`stem: cifar` has another first layer than the pretrained network; leave one of them out")
    net, origin = network(name, pretrained=pretrained, root=root)
    layers = trunk(net, without=("avgpool", "fc"))
    if stem == "cifar":
        first = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")  # as torchvision's others
        layers.conv1, layers.maxpool = first, nn.Identity()
    return layers, origin
