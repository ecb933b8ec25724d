"""The images of a training: its splits, and the batches that its sampler draws."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, NamedTuple

import torch

from workers import registry
from workers.contract import Place, Recipe
from workers.data.augmentation import Augment
from workers.data.images import Batch, Images
from workers.data.splits import Splits, splits
from workers.samplers import Sampler

_PIXELS: Final = 2**24  # bytes of images embedded at a time in an evaluation
_BATCH: Final = 1024  # images at most
_AHEAD: Final = 2  # batches that are decoded while one is trained on
_SHARE: Final = 16  # the part of the free memory of a device that images may take: others train there too


class LabelledBatch(NamedTuple):
    """What a sampler drew, on the device of the training.

    Where a task looks at several views of an image, all b images stand in their order once for each view, and none has
    its class: the views of an image have one label, its place among the b.
    """

    images: torch.Tensor  # [b, c, h, w] of 0 to 255; [views b, c, h, w]
    labels: torch.Tensor  # int64 [b]; [views b]


class Batches:
    """What a recipe's data set and sampler give, augmented and on a device; `seed` gives one for each purpose.

    Of each image that is drawn there are so many `views`, each augmented by random parameters of its own. Raises
    DataMissingError, DataDamagedError, ValueError.
    """

    def __init__(
        self, recipe: Recipe, place: Place, device: torch.device, seed: Callable[[str], int], views: int = 1
    ) -> None:
        self._device, self._views = device, views
        self.splits = _on(device, splits(recipe, place.data_root, place.scratch, place.parts))
        self.augment = Augment(recipe.augment, stored=self.splits.train.side, crop=recipe.crop)
        self._drawn = torch.Generator().manual_seed(seed("augment"))
        self._generator = torch.Generator().manual_seed(seed("sampler"))
        self._threads = ThreadPoolExecutor(place.threads, "decoding")
        self._ahead: deque[tuple[torch.Tensor, Callable[[], Batch]]] = deque()
        self.sampler: Sampler = registry.build(
            "sampler",
            recipe.part("sampler"),
            place.parts,
            labels=self.splits.train.labels.cpu(),
            generator=self._generator,
        )
        self.batch = self.sampler.batch * views
        """The images that the network sees of a batch."""

    def _begin(self, indices: torch.Tensor) -> None:
        self._ahead.append((indices, self.splits.train.begin(indices, self._threads)))

    def next(self) -> LabelledBatch:
        """The images of the next batch, augmented, and their labels.

        Where images must be decoded, the batches after it are drawn already, and are decoded meanwhile.
        """
        if not self._ahead:
            self._begin(self.sampler.draw())
        indices, taken = self._ahead.popleft()
        while self.splits.train.undecoded is not None and len(self._ahead) < _AHEAD:
            self._begin(self.sampler.draw())
        images, sizes = taken()
        images = images.to(self._device)
        seen = [self.augment.train(images, self._drawn, sizes) for _ in range(self._views)]
        if self._views > 1:
            places = torch.arange(len(indices), device=self._device)
            return LabelledBatch(torch.cat(seen), places.repeat(self._views))
        labels = self.splits.train.labels[indices.to(self.splits.train.labels.device)]
        return LabelledBatch(seen[0], labels.to(self._device))

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
        ahead: deque[Callable[[], Batch]] = deque()
        for indices in torch.split(torch.arange(len(images)) if chosen is None else chosen, size):
            ahead.append(images.begin(indices, self._threads))
            if images.undecoded is None or len(ahead) > 1:
                yield self._seen(ahead.popleft())
        while ahead:
            yield self._seen(ahead.popleft())

    def _seen(self, taken: Callable[[], Batch]) -> torch.Tensor:
        images, sizes = taken()
        return self.augment.test(images.to(self._device), sizes)

    def state_dict(self) -> dict[str, Any]:
        """What decides the batches to come."""
        generators = [self._generator.get_state(), self._drawn.get_state()]
        ahead = [indices for indices, _ in self._ahead]
        return {"sampler": self.sampler.state_dict(), "generators": generators} | ({"ahead": ahead} if ahead else {})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self.sampler.load_state_dict(state["sampler"])
        for generator, held in zip((self._generator, self._drawn), state["generators"], strict=True):
            generator.set_state(held)
        self._ahead.clear()
        for indices in state.get("ahead", ()):  # drawn before the state was taken, and not trained on yet
            self._begin(indices)


def _on(device: torch.device, found: Splits) -> Splits:
    """The splits with their labels on the device, and their pixels too where they need little of its memory."""
    sets = [found.train, *(found.named(name) for name in found.names)]
    size = sum(split.images.nbytes for split in sets)
    fits = device.type == "cuda" and size * _SHARE <= torch.cuda.mem_get_info(device)[0]

    def moved(split: Images) -> Images:
        return split.to(device) if fits else replace(split, labels=split.labels.to(device))

    validation = moved(found.validation) if found.validation else None
    tests = {name: moved(split) for name, split in found.tests.items()}
    return replace(found, train=moved(found.train), validation=validation, test=moved(found.test), tests=tests)
