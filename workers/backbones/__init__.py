"""Backbones: modules whose `forward` turns images into features [b, features]; one file a backbone.

Images are [b, c, h, w], after the backbone's `preprocess`. This module has what convolutional backbones share.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from workers.data.augmentation import IMAGENET, Preprocess
from workers.data.weights import fill, read

Pool = Literal["avg", "max", "avg+max", "gem"]

GEM_START: Final = 3.0
"""The exponent from which GeM pooling learns."""
_GEM_LEAST: Final = 1e-6  # smaller values, also negative ones, count as this one


class ConvNet(nn.Module):
    """A network for images of three channels that ends in maps; `pool` turns each map into one feature.

    `pool: gem` is the generalized mean of each map (Radenovic et al., TPAMI 2019), with the fixed exponent `gem_p`, or
    with a single exponent that is learned from 3 on. 1 is the average; towards infinity it becomes the maximum.
    """

    net: nn.Module
    features: int
    preprocess: Preprocess = IMAGENET
    """Turns batches of bytes into the input of the network; it also gives grey images their three channels."""
    origin: str = "random"  # the source of the weights: `random`, `sha256:...` of a file, or the hub's name for them

    def __init__(
        self,
        channels: int,
        pool: Pool,
        *,
        gem_p: float | None = None,
        pretrained: bool = False,
        weights: str | None = None,
    ) -> None:
        super().__init__()
        if channels not in {1, 3}:
            raise ValueError(f"the backbone takes images of 3 channels, or grey images of 1; found {channels} channels")
        if pretrained and weights is not None:
            raise ValueError("the backbone has both `pretrained: true` and a file of `weights`; give one of them")
        self._pool: Pool = pool
        self.gem_p: float | nn.Parameter | None = gem_p
        self._frozen: list[_BatchNorm] = []

    def maps(self, images: Tensor) -> Tensor:
        """Computes the feature maps [b, features, h', w'] of preprocessed images [b, 3, h, w]."""
        maps: Tensor = self.net(images)
        return maps

    def forward(self, images: Tensor) -> Tensor:
        if self._pool == "gem":
            return gem(self.maps(images), GEM_START if self.gem_p is None else self.gem_p)
        return pooled(self.maps(images), self._pool)

    def load(
        self,
        root: Path,
        path: str | None,
        *,
        unused: tuple[str, ...],
        known: Mapping[str, str] | None = None,
        freeze_bn: bool = False,
    ) -> Mapping[str, Any]:
        """Fill the network with weights of the file `path` under the data root, if given, and freeze batch norm if
        asked to.

        Returns the metadata of the file. Raises WeightsError.
        """
        meta: Mapping[str, Any] = {}
        if path is not None:
            weights = read(root, path, known)
            fill(getattr(self, "net", self), weights.state, path, unused)
            self.origin, meta = weights.origin, weights.meta
        if self._pool == "gem" and self.gem_p is None:  # after the weights of files, which have no exponent
            self.gem_p = nn.Parameter(torch.tensor(GEM_START))
        if freeze_bn:
            self.freeze_batch_norm()
        return meta

    def freeze_batch_norm(self) -> None:
        """Freeze the statistics and parameters of all batch norms, whatever `train` and `requires_grad_` are called
        with.

        Its weight and bias become buffers, so that no optimizer has them; the names in the state stay the same.
        """
        self._frozen = [layer for layer in self.modules() if isinstance(layer, _BatchNorm)]
        for layer in self._frozen:
            for name, value in list(layer.named_parameters(recurse=False)):
                delattr(layer, name)
                layer.register_buffer(name, value.detach())
        self.train(self.training)

    def train(self, mode: bool = True) -> "ConvNet":
        """As in PyTorch, but a frozen batch norm stays in evaluation mode."""
        super().train(mode)
        for layer in self._frozen:
            layer.eval()
        return self


def convolved(net: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """The output of the ReLU after each convolution of a sequential `net`, by the names conv1, conv2 and so on."""
    outputs: dict[str, Tensor] = {}
    after_convolution = False
    for layer in (module for module in net.modules() if not [*module.children()]):
        images = layer(images)
        after_convolution = after_convolution or isinstance(layer, nn.Conv2d)
        if after_convolution and isinstance(layer, nn.ReLU):
            outputs[f"conv{len(outputs) + 1}"], after_convolution = images, False
    return outputs


def averaged(maps: Tensor, side: int) -> Tensor:
    """Adaptive average pooling of maps [b, c, h, w] to [b, c, side, side], with a deterministic gradient on a GPU."""
    rows, columns = (_bins(maps, length, side) for length in maps.shape[2:])
    return rows @ maps @ columns.T


def _bins(like: Tensor, length: int, side: int) -> Tensor:
    """The weight of each of `length` values in each of `side` means, [side, length]."""
    bins, places = torch.arange(side, device=like.device)[:, None], torch.arange(length, device=like.device)
    first, end = bins * length // side, -((bins + 1) * length // -side)
    inside = ((places >= first) & (places < end)).to(like.dtype)
    return inside / inside.sum(dim=1, keepdim=True)


def check_side(name: str, side: int, least: int) -> None:
    """Raise ValueError if images of `side` are too small for the backbone `name`."""
    if side < least:
        raise ValueError(f"{name} cannot take images of side {side}; it needs {least} at least: set `resize`")


def gem(maps: Tensor, p: float | Tensor) -> Tensor:
    """Pools maps [b, c, h, w] to features [b, c]: the p-th root of the mean of the p-th powers, in float32."""
    values = maps.float().clamp(min=_GEM_LEAST)
    # Relative to the maximum, whose factor cancels, no mean underflows: the root of 0 has no gradient.
    top = values.detach().amax(dim=(2, 3), keepdim=True)
    features: Tensor = top[..., 0, 0] * ((values / top) ** p).mean(dim=(2, 3)) ** (1 / p)
    return features


def pooled(maps: Tensor, pool: Pool) -> Tensor:
    """Pools maps [b, c, h, w] to features [b, c]: by average, maximum, or the sum of both (Proxy-Anchor)."""
    # Unlike adaptive pooling, mean and maximum have a deterministic gradient on a GPU.
    if pool == "avg":
        return maps.mean(dim=(2, 3))
    if pool == "max":
        return maps.amax(dim=(2, 3))
    return maps.mean(dim=(2, 3)) + maps.amax(dim=(2, 3))
