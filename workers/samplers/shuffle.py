"""Batches of shuffled images."""

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from annotated_types import Ge


class Shuffle:
    """All images in a random order, `batch` at a time, then in a new order; an incomplete batch is dropped."""

    label = "Shuffle"
    layout = "shuffled"

    def __init__(self, labels: torch.Tensor, generator: torch.Generator, *, batch: Annotated[int, Ge(1)] = 32) -> None:
        if not 1 <= batch <= len(labels):
            raise ValueError(f"shuffle: batch must be 1 to {len(labels):,}, the images that train, found {batch}")
        self._generator = generator
        self._order = torch.empty(0, dtype=torch.int64)
        self._position = 0
        self._count = len(labels)
        self.batch = batch

    def draw(self) -> torch.Tensor:
        if self._position + self.batch > len(self._order):
            self._order = torch.randperm(self._count, generator=self._generator)
            self._position = 0
        start, self._position = self._position, self._position + self.batch
        return self._order[start : self._position]

    def state_dict(self) -> dict[str, Any]:
        return {"order": self._order, "position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._order = state["order"]
        self._position = state["position"]
