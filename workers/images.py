"""Labelled images in memory: the value, its hold-out by classes, its content hash, and the loading of data sets."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import torch

from workers import registry
from workers.contract import Part, Recipe


class DataMissingError(FileNotFoundError):
    """A file of a data set is not there; the message says which, where it was looked for and how to provide it."""


class DataDamagedError(ValueError):
    """The files of a data set do not hold what they must."""


@dataclass(frozen=True)
class Images:
    """One split of a data set."""

    images: torch.Tensor  # uint8 [n, channels, side, side]
    labels: torch.Tensor  # int64 [n], contiguous from 0

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    def of_classes(self, wanted: torch.Tensor) -> "Images":
        """The images of the classes `wanted` (bool [classes]), in their order and with labels contiguous from 0."""
        kept = wanted[self.labels]
        renumbered = torch.cumsum(wanted, dim=0) - 1
        return Images(self.images[kept], renumbered[self.labels[kept]])

    def to(self, device: torch.device) -> "Images":
        """The same on another device."""
        return Images(self.images.to(device), self.labels.to(device))


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


def splits(recipe: Recipe, root: Path, scratch: Path, parts: Path | None = None) -> Splits:
    """The recipe's data set with its hold-out applied; raises DataMissingError, DataDamagedError, ValueError."""
    dataset = load(recipe.dataset, root, scratch, parts)
    if recipe.validation.name == "none":
        return Splits(dataset.train, None, dataset.test)
    train, validation = hold_out(dataset.train, recipe.validation.held_out(dataset.train.classes))
    if validation.classes < 2:
        raise ValueError(f"validation: the hold-out leaves {validation.classes} classes to validate; it needs 2")
    return Splits(train, validation, dataset.test)


def hold_out(images: Images, classes: range) -> tuple[Images, Images]:
    """(the images of all other classes, the images of `classes`), each with labels contiguous from 0."""
    held = torch.zeros(images.classes, dtype=torch.bool)
    held[classes.start : classes.stop] = True
    return images.of_classes(~held), images.of_classes(held)


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


def faults(dataset: DataSet) -> list[str]:
    """Where the content differs from the facts `classes`, `images` and `manifest`, of those that are declared."""
    wrong = []
    for fact, count in (("classes", lambda split: split.classes), ("images", len)):
        declared: Mapping[str, int] = getattr(dataset, fact, {})
        for name, expected in declared.items():
            found = count(getattr(dataset, name))
            if found != expected:
                wrong.append(f"{name} has {found:,} {fact}, expected {expected:,}")
    manifest = getattr(dataset, "manifest", None)
    if manifest is not None and not wrong and (content := content_hash(dataset)) != manifest:
        wrong.append(f"the content is {content}, expected {manifest}")
    return wrong


def content_hash(dataset: DataSet) -> str:
    """SHA-256 over the decoded images and labels of both splits, whatever files they came from."""
    digest = hashlib.sha256()
    for name in ("train", "test"):
        split: Images = getattr(dataset, name)
        digest.update(f"{name} {list(split.images.shape)}".encode())
        digest.update(split.images.contiguous().numpy().tobytes())
        digest.update(split.labels.contiguous().numpy().astype("<i8").tobytes())
    return f"sha256:{digest.hexdigest()}"
