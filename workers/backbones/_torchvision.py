"""Networks of torchvision, with its pretrained weights where asked for."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from torch import nn
from torchvision.models import get_model

from workers.data.weights import from_hub

PUBLISHED: Final = "IMAGENET1K_V1"
"""torchvision's first weights of each network: those that the papers started from."""


def network(name: str, *, pretrained: bool, **options: Any) -> tuple[nn.Module, str]:
    """The network and the origin of its weights; raises WeightsError where the hub is out of reach."""
    if not pretrained:
        return get_model(name, weights=None, **options), "random"
    net = from_hub(f"torchvision's weights of {name}", lambda: get_model(name, weights=PUBLISHED, **options))
    return net, f"torchvision {name} {PUBLISHED}"


def trunk(net: nn.Module, without: Iterable[str]) -> nn.Sequential:
    """The children of `net` in their order and with their names, but for those `without`."""
    left_out = set(without)
    children = [(name, child) for name, child in net.named_children() if name not in left_out]
    return nn.Sequential(OrderedDict(children))
