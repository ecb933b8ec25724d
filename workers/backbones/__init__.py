"""Backbones: from images to features; one file a backbone. Here is what the pretrained ones share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from workers.data.augmentation import IMAGENET, Preprocess
from workers.data.weights import fill, read

Pool = Literal["avg", "max", "avg+max"]


class ConvNet(nn.Module, ABC):
    """A network of three channels that ends in maps, which `pool` makes features: one value of each map."""

    features: int
    preprocess: Preprocess = IMAGENET
    """What turns batches of bytes into this backbone's input; it also gives grey images their three channels."""
    origin: str = "random"
    """Where the weights come from: `random`, `sha256:...` of a file, or the hub's name for them."""

    def __init__(self, channels: int, pool: Pool, *, pretrained: bool = False, weights: str | None = None) -> None:
        super().__init__()
        if channels not in {1, 3}:
            raise ValueError(f"the backbone takes images of 3 channels, or grey ones; found {channels} channels")
        if pretrained and weights is not None:
            raise ValueError("give `pretrained: true` or a file of `weights`, not both")
        self._pool: Pool = pool
        self._frozen: list[_BatchNorm] = []

    @abstractmethod
    def maps(self, images: Tensor) -> Tensor:
        """Images [b, 3, h, w] to maps [b, features, h', w']."""

    def forward(self, images: Tensor) -> Tensor:
        """Preprocessed images [b, 3, h, w] to features [b, features]."""
        return pooled(self.maps(images), self._pool)

    def fill_from(
        self,
        root: Path,
        path: str,
        *,
        net: nn.Module,
        unused: tuple[str, ...] = (),
        known: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Fill `net` with a file under the data root; gives what the file says of itself. Raises WeightsError."""
        weights = read(root, path, known)
        fill(net, weights.state, path, unused)
        self.origin = weights.origin
        return weights.meta

    def freeze_batch_norm(self) -> None:
        """Keep every batch norm as it is from now on, whatever `train` and `requires_grad_` are told.

        Weight and bias become buffers: no optimizer has them, and the names of the state stay the same.
        """
        self._frozen = [layer for layer in self.modules() if isinstance(layer, _BatchNorm)]
        for layer in self._frozen:
            for name, value in list(layer.named_parameters(recurse=False)):
                delattr(layer, name)
                layer.register_buffer(name, value.detach())
        self.train(self.training)

    def train(self, mode: bool = True) -> "ConvNet":
        """As in PyTorch, but a frozen batch norm stays in evaluation."""
        super().train(mode)
        for layer in self._frozen:
            layer.eval()
        return self


def convolved(net: nn.Module, images: Tensor) -> dict[str, Tensor]:
    """What comes out of each ReLU behind a convolution in the order of `net`, by names: conv1, conv2 and so on."""
    found: dict[str, Tensor] = {}
    behind = False
    for layer in (one for one in net.modules() if not [*one.children()]):
        images = layer(images)
        behind = behind or isinstance(layer, nn.Conv2d)
        if behind and isinstance(layer, nn.ReLU):
            found[f"conv{len(found) + 1}"], behind = images, False
    return found


def averaged(maps: Tensor, side: int) -> Tensor:
    """Maps [b, c, h, w] to [b, c, side, side] as adaptive pooling does; its gradient is deterministic on a GPU, too."""
    rows, columns = (_bins(maps, length, side) for length in maps.shape[2:])
    return rows @ maps @ columns.T


def _bins(like: Tensor, length: int, side: int) -> Tensor:
    """What share each of `length` values has in each of `side` means, [side, length]."""
    bins, places = torch.arange(side, device=like.device)[:, None], torch.arange(length, device=like.device)
    first, end = bins * length // side, -((bins + 1) * length // -side)
    inside = ((places >= first) & (places < end)).to(like.dtype)
    return inside / inside.sum(dim=1, keepdim=True)


def check_side(name: str, side: int, least: int) -> None:
    """Raise ValueError where images of `side` would leave the backbone `name` no map to pool."""
    if side < least:
        raise ValueError(f"{name} cannot take images of side {side}; it needs {least} at least: set `resize`")


def pooled(maps: Tensor, pool: Pool) -> Tensor:
    """Maps [b, c, h, w] to [b, c]: global average (GAP), global maximum (GMP), or the sum of both (Proxy-Anchor)."""
    # Unlike adaptive pooling, a mean and a maximum have a deterministic gradient on a GPU.
    if pool == "avg":
        return maps.mean(dim=(2, 3))
    if pool == "max":
        return maps.amax(dim=(2, 3))
    return maps.mean(dim=(2, 3)) + maps.amax(dim=(2, 3))
