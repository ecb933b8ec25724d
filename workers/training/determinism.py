"""Makes trainings repeatable: seeds, states of random generators, threads, deterministic algorithms."""

import hashlib
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import deterministic


class RandomState(nn.Module):
    """Random numbers of a part, which do not change those of other parts.

    The stream is seeded from torch's generator at construction, and so from the recipe. It advances in training mode
    only, is part of the checkpoint, and is the same on every device.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))

    def uniform(self, *shape: int, like: Tensor) -> Tensor:
        """Numbers from [0, 1) in float32, on the device of `like`."""
        state = self.generator.get_state()
        drawn = torch.rand(*shape, generator=self.generator)
        if not self.training:
            self.generator.set_state(state)
        return drawn.to(like.device)

    def get_extra_state(self) -> Tensor:
        return self.generator.get_state()

    def set_extra_state(self, state: object) -> None:
        self.generator.set_state(cast(Tensor, state).cpu())


# cuBLAS reads it when the first CUDA context is made; without it its sums depend on the stream.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def device(name: str) -> torch.device:
    """The torch device called `name`; `auto` is a GPU if there is one. Raises ValueError if it does not exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = torch.device(name)
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r}: no CUDA device is available here")
    return found


@contextmanager
def applied(on: torch.device, threads: int) -> Iterator[None]:
    """Compute deterministically with `threads` threads within the block, and restore all settings afterwards."""
    before = random_state(on)
    counted = torch.get_num_threads()
    enforced, warned = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    tuned, filled = torch.backends.cudnn.benchmark, deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.set_num_threads(max(1, threads))
    # On a GPU some operations have no deterministic form; there the result may differ in the last bits.
    torch.use_deterministic_algorithms(True, warn_only=on.type != "cpu")
    # Filling new memory with NaN only shows a read of what was never written, at the price of a pass over all of it.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cudnn.benchmark = False
    # Only a network computes in a lower precision, by an autocast of its own (tasks/_network.py): no loss, no metric.
    # Its cache of weights would outlive the optimizer's step, since it is emptied by the outermost autocast only.
    precise = torch.autocast(on.type, enabled=False, cache_enabled=False)
    try:
        with precise:
            yield
    finally:
        torch.backends.cudnn.benchmark = tuned
        deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
        torch.use_deterministic_algorithms(enforced, warn_only=warned)
        torch.set_num_threads(counted)
        restore_random_state(before, on)


def derived(seed: int, purpose: str) -> int:
    """A separate seed for each purpose, so that one part's random numbers do not depend on another's."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}".encode()).digest()[:4], "big")


def seed_everything(seed: int) -> None:
    """Seed all global generators (Python, NumPy, torch on all devices); `seed` is below 2^32."""
    random.seed(seed)
    np.random.seed(seed)  # a part may draw from the global generator
    torch.manual_seed(seed)


def random_state(on: torch.device) -> dict[str, Any]:
    """The state of all global generators, in types that torch.load(weights_only=True) reads."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (kind, keys.tolist(), *rest),  # type: ignore[union-attr]
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state(on) if on.type == "cuda" else None,
    }


def restore_random_state(state: Mapping[str, Any], on: torch.device) -> None:
    """Restore the state of all global generators that `random_state` returned."""
    version, numbers, cached = state["python"]
    random.setstate((version, tuple(numbers), cached))
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if on.type == "cuda" and state["cuda"] is not None:
        torch.cuda.set_rng_state(state["cuda"], on)
