"""Labelled images in memory: the value, its hold-out by classes, its content hash, and the loading of data sets."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import torch

from workers import registry
from workers.contract import ClassHoldout, DataDamagedError, ImageHoldout, Part, Recipe
from workers.data.pair_set import Distractors, PairSet

_TOGETHER: Final = 1024  # images that are decoded before they are hashed
_SEED: Final = 0  # the same images are held out in all trainings


class Undecoded(Protocol):
    """What decodes images that lie on disk as they are."""

    def decode(self, number: int, into: torch.Tensor) -> None:
        """Write the pixels of an image to `into`, uint8 [channels, height, width]."""
        ...


class Batch(NamedTuple):
    """Images picked from a split."""

    images: torch.Tensor  # uint8 [b, channels, h, w], padded right and below with zeros where shapes differ
    sizes: torch.Tensor  # int64 [b, 2] on the CPU: the height and width of each without padding


@dataclass(frozen=True)
class Images:
    """One split of a data set; its pixels may be a memory map, or lie on disk in the form of their files."""

    images: torch.Tensor  # uint8 [n, channels, side, side]; where `shapes` is given flat, one image after another
    labels: torch.Tensor  # int64 [n], contiguous from 0
    shapes: torch.Tensor | None = None
    """Of images of unequal shapes: first byte, channels, height, width; int64 [n, 4] on the CPU."""
    query: torch.Tensor | None = None
    """Where queries are searched among other images: bool [n], whether an image is a query; else all are both."""
    names: tuple[str, ...] | None = None
    """The name of each class, for people; none where the data set has only numbers."""
    pairs: PairSet | None = None
    """Where the data set says which pairs of its images are verified; those of some classes have none of them."""
    distractors: Distractors | None = None
    """Where the data set says among which of its images its queries are identified."""
    undecoded: Undecoded | None = None
    """Where images are decoded as they are taken: what does so. `images` is empty then, and the first of each of
    `shapes` is the number that it knows the image by."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    @property
    def counts(self) -> dict[str, int]:
        """How many classes, images and queries there are, and how many pairs where these are drawn up."""
        queries = 0 if self.query is None else int(self.query.sum())
        pairs = {} if self.pairs is None else {"pairs": len(self.pairs.same)}
        return {"classes": self.classes, "images": len(self), "queries": queries, **pairs}

    @property
    def channels(self) -> int:
        """1 of grey images, 3 of colour."""
        return self.images.shape[1] if self.shapes is None else int(self.shapes[0, 1])

    @property
    def side(self) -> int:
        """The pixels of the shorter side of the smallest image."""
        return min(self.images.shape[2:]) if self.shapes is None else int(self.shapes[:, 2:].min())

    def take(self, indices: torch.Tensor) -> Batch:
        """The images at `indices` (int64 [b]) on the device where they live; indices on the CPU avoid a wait."""
        if self.shapes is None:
            picked = self.images[indices.to(self.images.device)]
            return Batch(picked, torch.tensor(self.images.shape[2:]).expand(len(indices), 2))
        shapes = self.shapes[indices.cpu()]
        if self.undecoded is not None:
            return self.begin(indices)()
        batch = self._blank(shapes)
        for into, (first, c, h, w) in zip(batch.images, shapes.tolist(), strict=True):
            into[:, :h, :w] = self.images[first : first + c * h * w].view(c, h, w)
        return batch

    def begin(self, indices: torch.Tensor, threads: Executor | None = None) -> Callable[[], Batch]:
        """Begin to take the images at `indices`, by `threads` where they must be decoded; gives what ends it.

        That raises DataDamagedError where an image cannot be decoded.
        """
        if self.undecoded is None or self.shapes is None:
            return partial(self.take, indices)
        shapes = self.shapes[indices.cpu()]
        batch = self._blank(shapes)
        pieces = [
            partial(self.undecoded.decode, number, into[:, :h, :w])
            for into, (number, _, h, w) in zip(batch.images, shapes.tolist(), strict=True)
        ]
        waited = [piece if threads is None else threads.submit(piece).result for piece in pieces]

        def end() -> Batch:
            for piece in waited:
                piece()
            return batch

        return end

    @property
    def extent(self) -> list[int]:
        """The shape of all pixels: [n, channels, h, w], or where shapes differ how many there are."""
        if self.undecoded is None or self.shapes is None or not len(self):
            return [*self.images.shape]
        return [len(self), *self.shapes[0, 1:].tolist()]

    def pixels(self) -> Iterator[torch.Tensor]:
        """All pixels in order, those of some images at a time where they must be decoded."""
        if self.undecoded is None:
            yield self.images.contiguous()
            return
        for some in torch.split(torch.arange(len(self)), _TOGETHER):
            yield self.take(some).images

    def _blank(self, shapes: torch.Tensor) -> Batch:
        """Images of zeros that hold those of `shapes`; on the CPU where these must be decoded."""
        height, width = shapes[:, 2:].amax(dim=0).tolist() if len(shapes) else (0, 0)
        device = None if self.undecoded is None else "cpu"
        return Batch(self.images.new_zeros(len(shapes), self.channels, height, width, device=device), shapes[:, 2:])

    def of_classes(self, wanted: torch.Tensor) -> "Images":
        """The images of the classes `wanted` (bool [classes]), in their order and with labels contiguous from 0.

        Pixels are shared, not copied, where shapes differ or the images lie together.
        """
        kept = self.of_images(wanted[self.labels])
        renumbered = torch.cumsum(wanted, dim=0) - 1
        names = None if self.names is None else tuple(self.names[place] for place in wanted.nonzero()[:, 0].tolist())
        return replace(kept, labels=renumbered[kept.labels], names=names)

    def of_images(self, wanted: torch.Tensor) -> "Images":
        """The images that are `wanted` (bool [n]), in their order and with the labels that they have.

        Pixels are shared, not copied, where shapes differ or the images lie together.
        """
        query = None if self.query is None else self.query[wanted]
        labels = self.labels[wanted]
        if self.shapes is not None:
            shapes = self.shapes[wanted.cpu()]
            return Images(self.images, labels, shapes, query, self.names, undecoded=self.undecoded)
        places = wanted.nonzero()[:, 0]
        first, past = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        together = past - first == len(places)
        return Images(self.images[first:past] if together else self.images[wanted], labels, None, query, self.names)

    def to(self, device: torch.device) -> "Images":
        """The same on another device."""
        query = None if self.query is None else self.query.to(device)
        return replace(self, images=self.images.to(device), labels=self.labels.to(device), query=query)


class DataSet(Protocol):
    """What a part of the kind `dataset` offers."""

    train: Images
    test: Images


@dataclass(frozen=True)
class Splits:
    """What one training learns from and is judged on."""

    train: Images
    validation: Images | None
    test: Images
    content: str | None = None
    """The hash of what was read, where the data set knows it: for the provenance."""

    def named(self, name: str) -> Images:
        """The split `train`, `validation` or `test`; raises ValueError where nothing is held out for validation."""
        found = {"train": self.train, "validation": self.validation, "test": self.test}[name]
        if found is None:
            raise ValueError(f"the recipe holds nothing out, so there is no split {name!r}")
        return found


def splits(recipe: Recipe, root: Path, scratch: Path, parts: Path | None = None) -> Splits:
    """The recipe's data set with its hold-out applied; raises DataMissingError, DataDamagedError, ValueError."""
    dataset, wanted = load(recipe.part("dataset"), root, scratch, parts), recipe.validation
    train, validation = dataset.train, None
    if isinstance(wanted, ClassHoldout):
        train, validation = hold_out(dataset.train, wanted.held_out(dataset.train.classes))
    elif isinstance(wanted, ImageHoldout):
        held = dealt(dataset.train.labels, wanted.folds, wanted.fold)
        train, validation = dataset.train.of_images(~held), dataset.train.of_images(held)
    if validation and len(validation.labels.unique()) < 2:  # type: ignore[no-untyped-call]
        found = len(validation.labels.unique())  # type: ignore[no-untyped-call]
        raise ValueError(f"validation: the hold-out leaves {found} classes to validate; it needs 2")
    return Splits(train, validation, dataset.test, content(dataset))


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


def load(part: Part, root: Path, scratch: Path, parts: Path | None = None) -> DataSet:
    """The data set, verified against its facts; the last few stay in memory, so that a warm process pays once."""
    return _load(part.model_dump_json(), root.absolute(), scratch.absolute(), parts)


@lru_cache(maxsize=4)
def _load(part: str, root: Path, scratch: Path, parts: Path | None) -> DataSet:
    dataset: DataSet = registry.build("dataset", Part.model_validate_json(part), parts, root=root, scratch=scratch)
    wrong = faults(dataset)
    if wrong:
        raise DataDamagedError(f"{Part.model_validate_json(part).name} in {root}: {'; '.join(wrong)}")
    return dataset


def faults(dataset: DataSet, *, pixels: bool = True) -> list[str]:
    """Where the content differs from the facts `classes`, `images` and `manifest`, of those that are declared.

    A data set whose hyper-parameter `official` is false declares none: it may be a part of the official one. What a
    recipe says of the content, which such a data set keeps as `expected`, holds in any case. Without `pixels` only
    counts are compared.
    """
    official = getattr(dataset, "official", True)
    wrong = miscounts(dataset, {name: getattr(dataset, name).counts for name in ("train", "test")}) if official else []
    expected = getattr(dataset, "expected", None) or (getattr(dataset, "manifest", None) if official else None)
    if pixels and expected is not None and not wrong and (found := content_hash(dataset)) != expected:
        wrong.append(f"the content is {found}, expected {expected}")
    return wrong


def miscounts(declaring: object, found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Where the counts of each split differ from the facts `classes`, `images`, `queries` and `pairs` of a data set."""
    wrong = []
    for fact in ("classes", "images", "queries", "pairs"):
        declared: Mapping[str, int] = getattr(declaring, fact, {})
        for name, expected in declared.items():
            if name in found and found[name][fact] != expected:
                wrong.append(f"{name} has {found[name][fact]:,} {fact}, expected {expected:,}")
    return wrong


def content(dataset: DataSet) -> str | None:
    """The hash that a data set knows of its content: the one it declares, or the one it read."""
    known: str | None = getattr(dataset, "content", None) or getattr(dataset, "manifest", None)
    return known


def content_hash(dataset: DataSet) -> str:
    """SHA-256 over the decoded images and labels of both splits, whatever files they came from."""
    if known := getattr(dataset, "content", None):
        return str(known)
    digest = hashlib.sha256()
    for name in ("train", "test"):
        split: Images = getattr(dataset, name)
        digest.update(f"{name} {split.extent}".encode())
        for pixels in split.pixels():
            digest.update(pixels.numpy().data)
        digest.update(split.labels.contiguous().numpy().astype("<i8").tobytes())
    return f"sha256:{digest.hexdigest()}"
