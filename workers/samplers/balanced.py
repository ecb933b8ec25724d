"""Batches of a few classes with equally many images."""

from collections.abc import Mapping
from typing import Annotated, Any

import torch
from annotated_types import Ge


class Balanced:
    """`classes` different classes a batch with `per_class` images each, the images of a class side by side.

    Images repeat within a batch only where a class has fewer than `per_class` (SEC's sampler).
    """

    label = "Balanced"
    paper = "SEC"
    layout = "class_blocks"
    draws = "classes"

    def __init__(
        self,
        labels: torch.Tensor,
        generator: torch.Generator,
        *,
        classes: Annotated[int, Ge(1)] = 4,
        per_class: Annotated[int, Ge(1)] = 8,
    ) -> None:
        self._images = [torch.nonzero(labels == label).flatten() for label in sorted(set(labels.tolist()))]
        if classes > len(self._images):
            raise ValueError(f"balanced: {classes} classes a batch, but only {len(self._images)} classes train")
        self._generator, self._classes, self._per_class = generator, classes, per_class
        self.batch = classes * per_class

    def draw(self) -> torch.Tensor:
        classes = torch.randperm(len(self._images), generator=self._generator)[: self._classes]
        return torch.cat([self._of_class(place) for place in classes.tolist()])

    def _of_class(self, place: int) -> torch.Tensor:
        images = self._images[place]
        count = len(images)
        if count < self._per_class:
            return images[torch.randint(count, (self._per_class,), generator=self._generator)]
        return images[torch.randperm(count, generator=self._generator)[: self._per_class]]

    def state_dict(self) -> dict[str, Any]:
        """Nothing: every batch is drawn anew from the generator, whose state the trainer keeps."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
