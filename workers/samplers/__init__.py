"""Samplers: which images stand in a batch; one file a sampler."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch


class Sampler(Protocol):
    """What a part of the kind `sampler` offers."""

    batch: int
    """The images of a batch."""

    def draw(self) -> torch.Tensor:
        """The indices of the next batch."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What it needs to go on."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        ...
