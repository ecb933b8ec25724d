"""Code of several backbones: torchvision's networks, InsightFace's residual networks, and TensorFlow's padding."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import get_model

from workers.backbones import ConvNet
from workers.data.augmentation import IMAGENET, Preprocess
from workers.data.weights import from_hub, into_cache

_EPSILON: Final = 2e-5  # of every batch norm
_WIDTHS: Final = (64, 128, 256, 512)
_SQUEEZED: Final = 16  # the factor by which a squeeze reduces channels


class FaceResNet(ConvNet):
    """InsightFace's residual network up to its last maps: each value of them, after batch norm and dropout."""

    _units: Sequence[int]
    _squeeze: bool

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
        self.net = _face_network(self._units, squeeze=self._squeeze)
        self.dropout = nn.Dropout(dropout)
        side = resize or side
        for _ in _WIDTHS:
            side = (side + 1) // 2
        self.features = _WIDTHS[-1] * side**2
        self.preprocess = Preprocess(mean=(127.5 / 128,) * 3, scale=128.0, side=resize)
        self.load(root, weights, unused=("fc.", "features."))

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.dropout(self.maps(images)).flatten(1)
        return values


class _Squeeze(nn.Module):
    """Squeeze and excitation: multiplies each map by a weight of 0 to 1 computed from the means of all maps."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Conv2d(width, width // _SQUEEZED, 1)
        self.prelu = nn.PReLU(width // _SQUEEZED)
        self.fc2 = nn.Conv2d(width // _SQUEEZED, width, 1)

    def forward(self, maps: Tensor) -> Tensor:
        means = maps.mean(dim=(2, 3), keepdim=True)
        weights: Tensor = self.fc2(self.prelu(self.fc1(means))).sigmoid()
        return maps * weights


class _Unit(nn.Module):
    """A residual unit: BN, convolution, BN, PReLU, convolution, BN, and optionally a squeeze."""

    def __init__(self, before: int, width: int, stride: int, *, squeeze: bool) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before, eps=_EPSILON)
        self.conv1 = nn.Conv2d(before, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, eps=_EPSILON)
        self.prelu = nn.PReLU(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width, eps=_EPSILON)
        self.se = _Squeeze(width) if squeeze else nn.Identity()
        same = before == width and stride == 1
        self.downsample = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width, eps=_EPSILON)
        )  # fmt: skip

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.prelu(self.bn2(self.conv1(self.bn1(maps))))
        changed: Tensor = self.se(self.bn3(self.conv2(inner))) + self.downsample(maps)
        return changed


def _face_network(units: Sequence[int], *, squeeze: bool) -> nn.Sequential:
    """A stem that keeps the side, then four stages that halve it, with `units` units each; 512 maps.

    Parameters have the names of InsightFace's PyTorch code and start as in its MXNet code: convolutions from the
    normal distribution with variance 2 / fan-out, PReLU at a quarter.
    """
    layers: list[tuple[str, nn.Module]] = [
        ("conv1", nn.Conv2d(3, _WIDTHS[0], 3, padding=1, bias=False)),
        ("bn1", nn.BatchNorm2d(_WIDTHS[0], eps=_EPSILON)),
        ("prelu", nn.PReLU(_WIDTHS[0])),
    ]
    before = _WIDTHS[0]
    for number, (width, count) in enumerate(zip(_WIDTHS, units, strict=True), 1):
        stage = [_Unit(before, width, 2, squeeze=squeeze)]
        stage += [_Unit(width, width, 1, squeeze=squeeze) for _ in range(count - 1)]
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


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding: outputs are ceil(side / stride) wide; extra padding is right and
    below.
    """

    def forward(self, images: Tensor) -> Tensor:
        rows, columns = (
            max((-(-side // stride) - 1) * stride + dilation * (kernel - 1) + 1 - side, 0)
            for side, kernel, stride, dilation in zip(
                images.shape[-2:], self.kernel_size, self.stride, self.dilation, strict=True
            )
        )
        padded = functional.pad(images, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return functional.conv2d(padded, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)


def pad_same(net: nn.Module) -> None:
    """Give every strided convolution of `net` SAME padding; its weights and other settings stay."""
    for module in net.modules():
        if type(module) is nn.Conv2d and max(module.stride) > 1:
            module.__class__ = SameConv2d


PUBLISHED: Final = "IMAGENET1K_V1"
"""torchvision's first weights of each network, with which the papers started."""


def network(name: str, *, pretrained: bool, root: Path, **options: Any) -> tuple[nn.Module, str]:
    """Builds a torchvision network and names the origin of its weights; raises WeightsError if the hub cannot be
    reached.

    Weights are taken from the data root or from the library's cache, if they are there.
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
    """The layers of `net` in order and under their names, except those in `without`."""
    left_out = set(without)
    return nn.Sequential(OrderedDict((name, child) for name, child in net.named_children() if name not in left_out))


class ResNet(ConvNet):
    """torchvision's residual network without its classifier.

    With the stem `cifar` the first maps are as large as the images.
    """

    only_where = {"gem_p": {"pool": "gem"}}
    _network: str

    def __init__(  # noqa: PLR0913 - each is one choice of the network
        self,
        channels: int,
        root: Path,
        *,
        stem: Literal["imagenet", "cifar"] = "imagenet",
        pool: Literal["avg", "max", "avg+max", "gem"] = "avg",
        gem_p: Annotated[float, Gt(0)] | None = None,
        freeze_bn: bool = False,
        pretrained: bool = False,
        weights: str | None = None,
        resize: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(channels, pool, gem_p=gem_p, pretrained=pretrained, weights=weights)
        if stem == "cifar" and pretrained:
            raise ValueError("`stem: cifar` has another first layer than the pretrained network; leave one of them out")
        net, self.origin = network(self._network, pretrained=pretrained, root=root)
        self.features = int(net.fc.in_features)  # type: ignore[union-attr, arg-type]
        self.net = trunk(net, without=("avgpool", "fc"))
        if stem == "cifar":
            first = nn.Conv2d(3, 64, 3, padding=1, bias=False)
            nn.init.kaiming_normal_(first.weight, mode="fan_out", nonlinearity="relu")  # as torchvision's others
            self.net.conv1, self.net.maxpool = first, nn.Identity()
        self.preprocess = replace(IMAGENET, side=resize)
        self.load(root, weights, unused=("fc.",), freeze_bn=freeze_bn)
