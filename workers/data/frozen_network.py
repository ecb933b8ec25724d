"""A network that is never trained: built from its part and weights, told apart by these, it computes features."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import nn

from workers import registry
from workers.contract import Part, Recipe
from workers.data.augmentation import Augment
from workers.data.images import Images
from workers.data.picture import processors
from workers.data.prefetch import onto
from workers.data.preprocess import SIGNED

_TOGETHER: Final = 32
"""Images of a batch: part of what decides the last bits of features, and so of their version."""
_THREADS: Final = 16  # each of which holds the maps of a batch
_TYPES: Final = {"none": None, "bf16": torch.bfloat16, "fp16": torch.float16}

Progress = Callable[[int], None]
"""Told how many images are done; may raise, which ends the work."""


class NetworkIdentity(NamedTuple):
    """Which network features are of."""

    digest: str
    """SHA-256 over the names, shapes and values of its weights and buffers."""
    origin: str | None
    """Where its weights come from, as it says itself."""


@dataclass(frozen=True)
class Network:
    """The network of a recipe whose features are taken, with all that decides the numbers."""

    part: Part
    module: nn.Module
    precision: str
    channels_last: bool
    device: torch.device

    @property
    def features(self) -> int:
        """The width of what it gives of an image."""
        return int(self.module.features)  # type: ignore[arg-type]

    @cached_property
    def identity(self) -> NetworkIdentity:
        """Which one it is."""
        found = hashlib.sha256()
        for name, value in self.module.state_dict().items():
            found.update(f"{name} {value.dtype} {[*value.shape]}".encode())
            plain = value.float() if value.dtype is torch.bfloat16 else value  # of which NumPy knows nothing
            found.update(plain.detach().cpu().numpy().tobytes())  # in the order of the shape, whatever lies in memory
        return NetworkIdentity(found.hexdigest(), getattr(self.module, "origin", None))

    def compute(self, images: Images, augment: Augment, into: np.ndarray[Any, Any], progress: Progress) -> None:
        """Write the features of all images of a split to `into`, float32 [n, features].

        Raises ValueError where features are not finite, DataDamagedError, and what `progress` raises. On the CPU as
        many batches at once as there are processors, each on one thread: so numbers do not depend on how many.
        """
        chunks = torch.split(torch.arange(len(images)), _TOGETHER)
        on_cpu = self.device.type == "cpu"
        set_threads: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)} if on_cpu else {}
        before = torch.get_num_threads()

        def one(indices: torch.Tensor) -> int:
            rows = self._of(*images.take(indices), augment)
            if not bool(rows.isfinite().all()):
                why = "; try `precision: none`" if self.precision == "fp16" else "; look at its weights"
                raise ValueError(f"backbone.of: features of {self.part.name} are not finite{why}")
            into[int(indices[0]) : int(indices[-1]) + 1] = rows.numpy()
            return len(indices)

        threads = ThreadPoolExecutor(min(processors(), _THREADS) if on_cpu else 1, "features", **set_threads)
        try:
            for future in [threads.submit(one, indices) for indices in chunks]:
                progress(future.result())
        finally:
            threads.shutdown(wait=True, cancel_futures=True)
            torch.set_num_threads(before)

    @torch.inference_mode()
    def _of(self, images: torch.Tensor, sizes: torch.Tensor, augment: Augment) -> torch.Tensor:
        """The features [b, n] of images as an evaluation sees them, float32 on the CPU."""
        seen = augment.test(onto(self.device, images), sizes)
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        pixels = getattr(self.module, "preprocess", SIGNED)(seen).contiguous(memory_format=layout)
        kind = _TYPES[self.precision]
        with torch.autocast(self.device.type, kind or torch.bfloat16, enabled=kind is not None, cache_enabled=False):
            found: torch.Tensor = self.module(pixels)
        return found.float().cpu()


def network(recipe: Recipe, part: Part, images: Images, side: int, where: tuple[Path, Path], **more: Any) -> Network:
    """The network `part` for these images, seen with `side` pixels; `where` are the data root and the scratch folder.

    What it draws where it has no weights is the same for all trainings. Raises WeightsError, and what building a part
    raises.
    """
    device, parts = more["device"], more.get("parts")
    root, scratch = where
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        offers = {"channels": images.channels, "side": side, "root": root, "scratch": scratch}
        module: nn.Module = registry.build("backbone", part, parts, **offers)
    module = module.to(device).eval()
    if recipe.channels_last:
        module = module.to(memory_format=torch.channels_last)
    return Network(part, module, recipe.precision, recipe.channels_last, device)
