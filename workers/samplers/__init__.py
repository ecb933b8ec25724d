"""Samplers: which images are in a batch; one file a sampler."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch


class Sampler(Protocol):
    """The interface of parts of the kind `sampler`."""

    batch: int

    def draw(self) -> torch.Tensor:
        """Draws the indices of the next batch, int64 [batch]."""

    def state_dict(self) -> dict[str, Any]:
        """The state of the sampler, for a checkpoint."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the sampler from a checkpoint."""
