"""The images of a training: its splits, and the batches that its sampler draws."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import torch

from workers import registry
from workers.contract import Place, Recipe
from workers.data.augmentation import Augment
from workers.data.images import Images, Splits, splits
from workers.samplers import Sampler

_PIXELS: Final = 2**24  # bytes of images embedded at a time in an evaluation
_BATCH: Final = 1024  # images at most
_SHARE: Final = 16  # the part of the free memory of a device that images may take: others train there too


class LabelledBatch(NamedTuple):
    """What a sampler drew, on the device of the training."""

    images: torch.Tensor  # [b, c, h, w] of 0 to 255
    labels: torch.Tensor  # int64 [b]


class Batches:
    """What a recipe's data set and sampler give, augmented and on a device; `seed` gives one for each purpose.

    Raises DataMissingError, DataDamagedError, ValueError.
    """

    def __init__(self, recipe: Recipe, place: Place, device: torch.device, seed: Callable[[str], int]) -> None:
        self._device = device
        self.splits = _on(device, splits(recipe, place.data_root, place.scratch, place.parts))
        self.augment = Augment(recipe.augment, stored=self.splits.train.side, crop=recipe.crop)
        self._drawn = torch.Generator().manual_seed(seed("augment"))
        self._generator = torch.Generator().manual_seed(seed("sampler"))
        self.sampler: Sampler = registry.build(
            "sampler",
            recipe.part("sampler"),
            place.parts,
            labels=self.splits.train.labels.cpu(),
            generator=self._generator,
        )

    def next(self) -> LabelledBatch:
        """The images of the next batch, augmented, and their labels."""
        indices = self.sampler.draw()
        images, sizes = self.splits.train.take(indices)
        labels = self.splits.train.labels[indices.to(self.splits.train.labels.device)]
        augmented = self.augment.train(images.to(self._device), self._drawn, sizes)
        return LabelledBatch(augmented, labels.to(self._device))

    def read(
        self, images: Images, preprocess: object = None, chosen: torch.Tensor | None = None
    ) -> Iterator[torch.Tensor]:
        """All images of a split in order, or those `chosen`, as an evaluation sees them and some at a time.

        `preprocess` is what a backbone does to them first, if it says so.
        """
        # A backbone may enlarge images, and colour grey ones; that of a researcher's own says so by any callable.
        side = max(self.augment.side, getattr(preprocess, "side", None) or 0)
        channels = max(images.channels, len(getattr(preprocess, "mean", ())))
        size = max(1, min(_BATCH, _PIXELS // (channels * side**2)))
        for indices in torch.split(torch.arange(len(images)) if chosen is None else chosen, size):
            batch, sizes = images.take(indices)
            yield self.augment.test(batch.to(self._device), sizes)

    def state_dict(self) -> dict[str, Any]:
        """What decides the batches to come."""
        generators = [self._generator.get_state(), self._drawn.get_state()]
        return {"sampler": self.sampler.state_dict(), "generators": generators}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self.sampler.load_state_dict(state["sampler"])
        for generator, held in zip((self._generator, self._drawn), state["generators"], strict=True):
            generator.set_state(held)


def _on(device: torch.device, found: Splits) -> Splits:
    """The splits with their labels on the device, and their pixels too where they need little of its memory."""
    sets = [split for split in (found.train, found.validation, found.test) if split]
    size = sum(split.images.nbytes for split in sets)
    fits = device.type == "cuda" and size * _SHARE <= torch.cuda.mem_get_info(device)[0]

    def moved(split: Images) -> Images:
        return split.to(device) if fits else replace(split, labels=split.labels.to(device))

    validation = moved(found.validation) if found.validation else None
    return Splits(moved(found.train), validation, moved(found.test), found.content)
