"""Batches: the split that trains, batches drawn ahead by a thread, and their images on the device."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

import torch

from workers import registry
from workers.contract import ClassHoldout, ImageHoldout, Place, Recipe
from workers.data.augmentation import Augment
from workers.data.features import FeatureSet, Tell, frozen, stored
from workers.data.images import (
    Batch,
    DataSet,
    Images,
    content,
    load,
    notes,
    onto,
    prefetcher,
    read,
    test_sets,
)
from workers.samplers import Sampler

_SEED: Final = 0  # the same images are held out in all trainings


@dataclass(frozen=True)
class Splits:
    """What one training learns from and is judged on."""

    train: Images
    validation: Images | None
    test: Images
    content: str | None = None
    """The hash of what was read, where the data set knows it: for the provenance."""
    tests: Mapping[str, Images] = field(default_factory=dict)
    """The test sets beside `test`, by the names of their splits: `test_lfw`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The splits that the weights at the end are judged on."""
        return ("test", *(["validation"] if self.validation else []), *self.tests)

    def named(self, name: str) -> Images:
        """The split `train`, `validation`, `test` or `test_lfw`; raises ValueError where there is none."""
        every = {"train": self.train, "validation": self.validation, "test": self.test, **self.tests}
        if name not in every:
            raise ValueError(f"there is no split {name!r}; there are {', '.join(every)}")
        found = every[name]
        if found is None:
            raise ValueError(f"the recipe holds nothing out, so there is no split {name!r}")
        return found


def splits(recipe: Recipe, dataset: DataSet) -> Splits:
    """A data set with the hold-out of a recipe applied; raises ValueError where that leaves too few classes."""
    wanted = recipe.validation
    train, validation = dataset.train, None
    if isinstance(wanted, ClassHoldout):
        train, validation = hold_out(dataset.train, wanted.held_out(dataset.train.classes))
    elif isinstance(wanted, ImageHoldout):
        held = dealt(dataset.train.labels, wanted.folds, wanted.fold)
        train, validation = dataset.train.of_images(~held), dataset.train.of_images(held)
    if validation and len(validation.labels.unique()) < 2:  # type: ignore[no-untyped-call]
        found = len(validation.labels.unique())  # type: ignore[no-untyped-call]
        raise ValueError(f"validation: the hold-out leaves {found} classes to validate; it needs 2")
    return Splits(train, validation, dataset.test, content(dataset), test_sets(dataset))


def hold_out(images: Images, classes: range) -> tuple[Images, Images]:
    """(the images of all other classes, the images of `classes`), each with labels contiguous from 0."""
    held = torch.zeros(images.classes, dtype=torch.bool)
    held[classes.start : classes.stop] = True
    return images.of_classes(~held), images.of_classes(held)


def dealt(labels: torch.Tensor, folds: int, fold: int) -> torch.Tensor:
    """Which images (bool [n]) one of `folds` shares has, of each class as many as of any or one more.

    A fixed seed shuffles those of a class. An image that is alone in its class is in no share.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SEED))
    order = order[labels[order].argsort(stable=True)]
    several = labels.bincount()[labels] > 1
    held = torch.zeros(len(labels), dtype=torch.bool)
    held[order[several[order]][fold::folds]] = True
    return held


_PIXELS: Final = 2**24  # bytes of images embedded at a time in an evaluation
_BATCH: Final = 1024  # images at most
_AHEAD: Final = 2  # batches that are prepared while one is trained on
_SHARE: Final = 16  # the part of the free memory of a device that images may take: others train there too


class LabelledBatch(NamedTuple):
    """What a sampler drew, on the device of the training.

    Where a task looks at several views of an image, all b images stand in their order once for each view, and none has
    its class: the views of an image have one label, its place among the b.
    """

    images: torch.Tensor  # [b, c, h, w] of 0 to 255; [views b, c, h, w]
    labels: torch.Tensor  # int64 [b]; [views b]


@dataclass
class _Ahead:
    """Images that the sampler has drawn, and that no step has taken."""

    indices: torch.Tensor
    before: torch.Tensor | None = None
    """The state of the augmentation's generator before it was drawn from for them, once it was."""
    take: Callable[[], LabelledBatch] | None = None
    """Waits until they are a batch."""


class Batches:
    """What a recipe's data set and sampler give, augmented and on a device; `seed` gives one for each purpose.

    Of each image that is drawn there are so many `views`, each augmented by random parameters of its own. For a GPU
    batches are prepared by a thread while another one is trained on. Where the backbone is frozen, its features stand
    in the place of images; `tell` hears how far these are. Raises DataMissingError, DataDamagedError, ValueError, and
    Stopped when asked to stop before the features are there.
    """

    def __init__(
        self,
        recipe: Recipe,
        place: Place,
        device: torch.device,
        seed: Callable[[str], int],
        views: int = 1,
        tell: Tell = lambda _: None,
    ) -> None:
        self._device, self._views = device, views
        dataset = load(recipe.part("dataset"), place.data_root, place.scratch, place.parts)
        self.remarks = tuple(f"data: {line}" for line in (read(dataset), *notes(dataset)))
        """Lines for the log: what was read, what was passed over."""
        held = frozen(recipe, place.parts)
        seen = stored(recipe, held, dataset, place, device, tell) if held else dataset
        self.splits = _on(device, splits(recipe, seen))
        self.pictures = splits(recipe, dataset) if held else self.splits
        """The splits as images, for people to look at."""
        self.network = seen.network if isinstance(seen, FeatureSet) else None
        """Of which network the features are that stand for images."""
        augment, crop = ("none", None) if held else (recipe.augment, recipe.crop)
        self.augment = Augment(augment, stored=self.splits.train.side, crop=crop)
        self._chance = torch.Generator().manual_seed(seed("augment"))
        self._generator = torch.Generator().manual_seed(seed("sampler"))
        self._threads = ThreadPoolExecutor(place.threads, "decoding")
        self._ahead: deque[_Ahead] = deque()
        self._prefetcher = prefetcher(device)
        self.sampler: Sampler = registry.build(
            "sampler",
            recipe.part("sampler"),
            place.parts,
            labels=self.splits.train.labels.cpu(),
            generator=self._generator,
        )
        self.batch = self.sampler.batch * views
        """The images that the network sees of a batch."""

    def next(self) -> LabelledBatch:
        """The images of the next batch, augmented, and their labels.

        Where images must be decoded, or a thread prepares them, the batches after it are drawn already.
        """
        if not self._ahead:
            self._begin(self.sampler.draw())
        batch = self._ahead.popleft()
        while (self.splits.train.undecoded is not None or self._prefetcher) and len(self._ahead) < _AHEAD:
            self._begin(self.sampler.draw())
        assert batch.take is not None
        take, batch.take = batch.take, None  # they hold one another, and pixels
        return take()

    def _begin(self, indices: torch.Tensor) -> None:
        """Begin to decode the images of a batch, and to prepare it where a thread does that."""
        batch = _Ahead(indices)
        prepare = partial(self._prepared, batch, self.splits.train.begin(indices, self._threads))
        batch.take = self._prefetcher.begin(prepare) if self._prefetcher else prepare
        self._ahead.append(batch)

    def _prepared(self, batch: _Ahead, taken: Callable[[], Batch]) -> LabelledBatch:
        """A batch on the device."""
        batch.before = self._chance.get_state()
        images, sizes = taken()
        images = onto(self._device, images)
        seen = [self.augment.train(images, self._chance, sizes) for _ in range(self._views)]
        if self._views > 1:
            places = torch.arange(len(batch.indices), device=self._device)
            return LabelledBatch(torch.cat(seen), places.repeat(self._views))
        labels = self.splits.train.labels
        return LabelledBatch(seen[0], onto(self._device, labels[onto(labels.device, batch.indices)]))

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
        ahead: deque[Callable[[], tuple[torch.Tensor]]] = deque()
        for indices in torch.split(torch.arange(len(images)) if chosen is None else chosen, size):
            see = partial(self._seen, images.begin(indices, self._threads))
            ahead.append(self._prefetcher.begin(see) if self._prefetcher else see)
            if (images.undecoded is None and not self._prefetcher) or len(ahead) > 1:
                yield ahead.popleft()()[0]
        while ahead:
            yield ahead.popleft()()[0]

    def _seen(self, taken: Callable[[], Batch]) -> tuple[torch.Tensor]:
        """Images as an evaluation sees them, on the device."""
        images, sizes = taken()
        return (self.augment.test(onto(self._device, images), sizes),)

    def state_dict(self) -> dict[str, Any]:
        """What decides the batches to come, whether they are prepared already or not."""
        before = None
        if self._prefetcher and self._ahead:
            with suppress(Exception):  # the step that takes it is told
                self._ahead[0].take()  # type: ignore[misc]
            before = self._ahead[0].before
        generators = [self._generator.get_state(), self._chance.get_state() if before is None else before]
        ahead = [batch.indices for batch in self._ahead]
        return {"sampler": self.sampler.state_dict(), "generators": generators} | ({"ahead": ahead} if ahead else {})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        for batch in self._ahead if self._prefetcher else ():  # the thread may still draw for it
            with suppress(Exception):
                batch.take()  # type: ignore[misc]
        self._ahead.clear()
        self.sampler.load_state_dict(state["sampler"])
        for generator, held in zip((self._generator, self._chance), state["generators"], strict=True):
            generator.set_state(held)
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
