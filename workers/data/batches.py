"""Batches: the training split, batches prepared ahead by a thread, and images on the device."""

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
from workers.data.features import FeatureSet, Log, frozen, stored
from workers.data.images import Batch, DataSet, Images, content, load, notes, onto, prefetcher, read, skipped, test_sets
from workers.samplers import Sampler

_SEED: Final = 0  # the same images are held out in all trainings

_PIXELS: Final = 2**24  # bytes of images embedded at a time in an evaluation
_BATCH: Final = 1024  # images at most
_AHEAD: Final = 2  # batches that are prepared while one is trained on
_SHARE: Final = 16  # the part of the free memory of a device that images may take: others train there too


class LabelledBatch(NamedTuple):
    """The images and labels of one batch on the device of the training.

    If a task compares views of images, all b images are repeated for each view, and the label of a view is the place of
    its image among the b.
    """

    images: torch.Tensor  # [b, c, h, w] of 0 to 255; [views b, c, h, w]
    labels: torch.Tensor  # int64 [b]; [views b]


@dataclass
class _Ahead:
    """Images that were drawn but not used yet."""

    indices: torch.Tensor
    before: torch.Tensor | None = None  # the state of the augmentation's generator before these images
    take: Callable[[], LabelledBatch] | None = None  # waits for the batch


class Batches:
    """The augmented batches of a recipe's data set and sampler, on a device.

    `seed` gives a seed for each purpose. Each drawn image has `views`, each with its own random augmentation. On a GPU,
    a thread prepares batches during training. If the backbone is frozen, its features replace images, and `log`
    receives their progress. Raises DataMissingError, DataDamagedError, ValueError, and Stopped if asked to stop before
    the features are computed.
    """

    def __init__(
        self,
        recipe: Recipe,
        place: Place,
        device: torch.device,
        seed: Callable[[str], int],
        views: int = 1,
        log: Log = lambda _: None,
    ) -> None:
        self._device, self._views = device, views
        dataset = load(recipe.part("dataset"), place.data_root, place.scratch, place.parts)
        self.remarks = tuple(f"data: {line}" for line in (read(dataset), *notes(dataset)))  # lines for the log
        self.skipped = [name.replace(f"{place.data_root.absolute()}/", "") for name in skipped(dataset)]
        network = frozen(recipe, place.parts)
        seen = stored(recipe, network, dataset, place, device, log) if network else dataset
        self.splits = _on(device, splits(recipe, seen))
        self.pictures = splits(recipe, dataset) if network else self.splits  # the splits as images for people
        self.network = seen.network if isinstance(seen, FeatureSet) else None
        augment, crop = ("none", None) if network else (recipe.augment, recipe.crop)
        self.augment = Augment(augment, stored=self.splits.train.side, crop=crop)
        # The side of images as an evaluation sees them, also of those of which a frozen backbone computed features.
        self.crop = Augment("none", stored=dataset.train.side, crop=recipe.crop).side if network else self.augment.side
        self._chance = torch.Generator().manual_seed(seed("augment"))
        self._generator = torch.Generator().manual_seed(seed("sampler"))
        self._threads = ThreadPoolExecutor(place.threads, "decoding")
        self._ahead: deque[_Ahead] = deque()
        self._prefetcher = prefetcher(device)
        offers = {"labels": self.splits.train.labels.cpu(), "generator": self._generator}
        self.sampler: Sampler = registry.build("sampler", recipe.part("sampler"), place.parts, **offers)
        self.batch = self.sampler.batch * views  # the images of a batch that the network sees

    def next(self) -> LabelledBatch:
        """Returns the augmented images of the next batch, and their labels.

        The batches after it may already be drawn, where a thread prepares them or decodes images.
        """
        if not self._ahead:
            self._begin(self.sampler.draw())
        batch = self._ahead.popleft()
        while (self.splits.train.undecoded is not None or self._prefetcher) and len(self._ahead) < _AHEAD:
            self._begin(self.sampler.draw())
        assert batch.take is not None
        take, batch.take = batch.take, None  # otherwise they would keep each other, and pixels, in memory
        return take()

    def _begin(self, indices: torch.Tensor) -> None:
        """Start decoding the images of a batch, and preparing it on a thread if there is one."""
        batch = _Ahead(indices)
        prepare = partial(self._prepared, batch, self.splits.train.begin(indices, self._threads))
        batch.take = self._prefetcher.begin(prepare) if self._prefetcher else prepare
        self._ahead.append(batch)

    def _prepared(self, batch: _Ahead, taken: Callable[[], Batch]) -> LabelledBatch:
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
        """Reads all images of a split in order, or those `chosen`, in chunks and as an evaluation sees them.

        `preprocess` is that of the backbone, if it has one.
        """
        size = together(images.channels, self.augment.side, preprocess)
        ahead: deque[Callable[[], tuple[torch.Tensor]]] = deque()
        for indices in torch.split(torch.arange(len(images)) if chosen is None else chosen, size):
            see = partial(self._seen, images.begin(indices, self._threads))
            ahead.append(self._prefetcher.begin(see) if self._prefetcher else see)
            if (images.undecoded is None and not self._prefetcher) or len(ahead) > 1:
                yield ahead.popleft()()[0]
        while ahead:
            yield ahead.popleft()()[0]

    def _seen(self, taken: Callable[[], Batch]) -> tuple[torch.Tensor]:
        images, sizes = taken()
        return (self.augment.test(onto(self._device, images), sizes),)

    def state_dict(self) -> dict[str, Any]:
        """The state that decides which batches come next, for a checkpoint."""
        before = None
        if self._prefetcher and self._ahead:
            with suppress(Exception):  # the step that takes it raises it
                self._ahead[0].take()  # type: ignore[misc]
            before = self._ahead[0].before
        generators = [self._generator.get_state(), self._chance.get_state() if before is None else before]
        ahead = [batch.indices for batch in self._ahead]
        return {"sampler": self.sampler.state_dict(), "generators": generators} | ({"ahead": ahead} if ahead else {})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for batch in self._ahead if self._prefetcher else ():  # the thread may still use the generators
            with suppress(Exception):
                batch.take()  # type: ignore[misc]
        self._ahead.clear()
        self.sampler.load_state_dict(state["sampler"])
        for generator, held in zip((self._generator, self._chance), state["generators"], strict=True):
            generator.set_state(held)
        for indices in state.get("ahead", ()):  # drawn but not used yet
            self._begin(indices)


def together(channels: int, side: int, preprocess: object) -> int:
    """The number of images with `channels` and `side` that an evaluation embeds at a time; `preprocess` is the
    backbone's.
    """
    # A backbone may enlarge images, and give grey ones three channels.
    side = max(side, getattr(preprocess, "side", None) or 0)
    channels = max(channels, len(getattr(preprocess, "mean", ())))
    return max(1, min(_BATCH, _PIXELS // (channels * side**2)))


@dataclass(frozen=True)
class Splits:
    """The training, validation and test images of a training, and further test sets."""

    train: Images
    validation: Images | None
    test: Images
    content: str | None = None  # the hash of what was read, if the data set knows it
    tests: Mapping[str, Images] = field(default_factory=dict)
    """Further test sets by the names of their splits: `test_lfw`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The splits on which the final weights are evaluated."""
        return ("test", *(["validation"] if self.validation else []), *self.tests)

    def named(self, name: str) -> Images:
        """The images of the split `train`, `validation`, `test` or `test_lfw`; raises ValueError for an unknown
        split.
        """
        every = {"train": self.train, "validation": self.validation, "test": self.test, **self.tests}
        if name not in every:
            raise ValueError(f"no split {name!r}; expected one of {', '.join(every)}")
        images = every[name]
        if images is None:
            raise ValueError(f"no split {name!r}, since the recipe holds nothing out")
        return images


def _on(device: torch.device, found: Splits) -> Splits:
    """The splits with their labels on the device, and with their pixels if they need little of its memory."""
    sets = [found.train, *(found.named(name) for name in found.names)]
    size = sum(split.images.nbytes for split in sets)
    fits = device.type == "cuda" and size * _SHARE <= torch.cuda.mem_get_info(device)[0]

    def moved(split: Images) -> Images:
        return split.to(device) if fits else replace(split, labels=split.labels.to(device))

    validation = moved(found.validation) if found.validation else None
    tests = {name: moved(split) for name, split in found.tests.items()}
    return replace(found, train=moved(found.train), validation=validation, test=moved(found.test), tests=tests)


def splits(recipe: Recipe, dataset: DataSet) -> Splits:
    """Divides a data set into splits by the hold-out of a recipe; raises ValueError if it leaves too few classes."""
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
    """Divides images into those of all other classes and those of `classes`, each with labels from 0."""
    held = torch.zeros(images.classes, dtype=torch.bool)
    held[classes.start : classes.stop] = True
    return images.of_classes(~held), images.of_classes(held)


def dealt(labels: torch.Tensor, folds: int, fold: int) -> torch.Tensor:
    """Which images (bool [n]) are in share `fold` of `folds` shares, with equal numbers of each class up to one image.

    A fixed seed shuffles the images of each class. An image that is alone in its class is in no share.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(_SEED))
    order = order[labels[order].argsort(stable=True)]
    several = labels.bincount()[labels] > 1
    held = torch.zeros(len(labels), dtype=torch.bool)
    held[order[several[order]][fold::folds]] = True
    return held
