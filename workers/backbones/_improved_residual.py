"""InsightFace's residual networks for faces, which its papers call IR: their units, and the network of them."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from torch import Tensor, nn

_EPSILON: Final = 2e-5  # of every batch norm
_WIDTHS: Final = (64, 128, 256, 512)
_SQUEEZED: Final = 16  # channels of a map that one of the squeeze stands for

HALVINGS: Final = len(_WIDTHS)
"""How often the side of an image is halved, rounded up: 112 pixels become 7."""
MAPS: Final = _WIDTHS[-1]
"""The maps that the network ends in."""


class Squeeze(nn.Module):
    """Squeeze and excitation: each map times a number of 0 to 1 that the means of all maps give."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(width, width // _SQUEEZED, 1)
        self.prelu = nn.PReLU(width // _SQUEEZED)
        self.fc2 = nn.Conv2d(width // _SQUEEZED, width, 1)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps [b, width, h, w] to as many."""
        means = maps.mean(dim=(2, 3), keepdim=True)
        weights: Tensor = self.fc2(self.prelu(self.fc1(means))).sigmoid()
        return maps * weights


class Unit(nn.Module):
    """BN, convolution, BN, PReLU, convolution, BN, perhaps a squeeze, and what came in besides."""

    def __init__(self, before: int, width: int, stride: int, *, squeeze: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before, eps=_EPSILON)
        self.conv1 = nn.Conv2d(before, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, eps=_EPSILON)
        self.prelu = nn.PReLU(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width, eps=_EPSILON)
        self.se = Squeeze(width) if squeeze else nn.Identity()
        same = before == width and stride == 1
        self.downsample = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width, eps=_EPSILON)
        )  # fmt: skip

    def forward(self, maps: Tensor) -> Tensor:
        """Maps [b, before, h, w] to [b, width, h / stride, w / stride]."""
        inner = self.prelu(self.bn2(self.conv1(self.bn1(maps))))
        changed: Tensor = self.se(self.bn3(self.conv2(inner))) + self.downsample(maps)
        return changed


def network(units: Sequence[int], *, squeeze: bool) -> nn.Sequential:
    """A stem that halves nothing, then as many units in each of four stages as `units` says; 512 maps.

    Its parameters have the names of InsightFace's PyTorch code, and start as in its MXNet code: convolutions by the
    normal distribution of variance 2 / fan-out, PReLU at a quarter.
    """
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", nn.Conv2d(3, _WIDTHS[0], 3, padding=1, bias=False)),
        ("bn1", nn.BatchNorm2d(_WIDTHS[0], eps=_EPSILON)),
        ("prelu", nn.PReLU(_WIDTHS[0])),
    ]
    before = _WIDTHS[0]
    for number, (width, count) in enumerate(zip(_WIDTHS, units, strict=True), 1):
        stage = [Unit(before, width, 2, squeeze=squeeze)]
        stage += [Unit(width, width, 1, squeeze=squeeze) for _ in range(count - 1)]
        layers.append((f"layer{number}", nn.Sequential(*stage)))
        before = width
    layers.append(("bn2", nn.BatchNorm2d(before, eps=_EPSILON)))
    net = nn.Sequential(OrderedDict(layers))
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return net


def features(side: int) -> int:
    """The values of all maps of an image of `side` pixels, one after another."""
    for _ in range(HALVINGS):
        side = (side + 1) // 2
    return MAPS * side**2
