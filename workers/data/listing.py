"""From a list of labelled image files to a data set: labels, counts, decoding; what the real data sets share."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data.decoded import stored
from workers.data.file_content import digests
from workers.data.images import Images, miscounts
from workers.data.pictures import Form, Picture, read_text

_MOST_DIGITS: Final = 18


class Listed(NamedTuple):
    """An image and the class that its data set gives it, however that numbers or names its classes."""

    picture: Picture
    label: int | str
    query: bool | None = None
    name: str | None = None
    """What people call the class; none: as the data set does."""


class Content(NamedTuple):
    """A data set as it was read."""

    train: Images
    test: Images
    content: str
    notes: tuple[str, ...]
    """What is remarkable, such as images that are in both splits."""


@dataclass(frozen=True)
class Source:
    """What decides how a list is loaded."""

    name: str
    form: Form
    scratch: Path
    declaring: object = None
    """The data set's class, which states the official counts."""
    official: bool = False
    """Whether other counts than these are refused."""


def load(source: Source, train: Sequence[Listed], test: Sequence[Listed]) -> Content:
    """Decode both splits; images lie class by class, labels run from 0 in the order of the classes.

    Raises DataDamagedError where counts differ from the official ones, before anything is decoded, and what
    `decoded` raises.
    """
    (first, second), content = _load(source, {"train": train, "test": test})
    return Content(first, second, content, () if source.official else tuple(_shared(train, test, source.scratch)))


def load_half(source: Source, name: Literal["train", "test"], listed: Sequence[Listed]) -> tuple[Images, str]:
    """The same of one split, where the other comes from elsewhere or there is none: its images, and their hash."""
    (only,), content = _load(source, {name: listed})
    return only, content


def _load(source: Source, halves: Mapping[str, Sequence[Listed]]) -> tuple[list[Images], str]:
    counted = {name: _counts(split) for name, split in halves.items()}
    wrong = miscounts(source.declaring, counted) if source.official else []
    wrong += [f"{name} has no images" for name, counts in counted.items() if not counts["images"]]
    if wrong:
        advice = "fetch the data set again, or set its `official: false` to train on a part of it"
        raise DataDamagedError(f"{source.name}: {'; '.join(wrong)}; {advice}")
    ordered = [sorted(split, key=lambda one: one.label) for split in halves.values()]
    pixels = stored(source.name, [one.picture for split in ordered for one in split], source.form, source.scratch)
    labels = [_labels(split) for split in ordered]
    content = hashlib.sha256(pixels.digest.encode())
    for numbers in labels:
        content.update(f"{len(numbers)}".encode() + numbers.numpy().astype("<i8").tobytes())
    images, first = [], 0
    for split, numbers in zip(ordered, labels, strict=True):
        rows = range(first, first + len(split))
        images.append(replace(pixels.split(rows, numbers, _queries(split)), names=_names(split)))
        first = rows.stop
    return images, f"sha256:{content.hexdigest()}"


def _shared(train: Sequence[Listed], test: Sequence[Listed], scratch: Path) -> Iterator[str]:
    """That files have the same content in both splits, by the hash of their bytes."""
    lying = digests({str(one.picture.path) for one in (*train, *test) if one.picture.content is None}, scratch)

    def digest(picture: Picture) -> str:
        if picture.content is None:
            return lying[os.path.abspath(picture.path)]
        return hashlib.sha256(picture.content).hexdigest()

    yield from shared(*([(digest(one.picture), str(one.picture)) for one in split] for split in (train, test)))


def shared(train: Iterable[tuple[str, str]], test: Iterable[tuple[str, str]]) -> Iterator[str]:
    """That images, (hash, name) each, have the same hash in both splits."""
    trained = dict(train)
    both = [(name, trained[digest]) for digest, name in test if digest in trained]
    if both:
        images = "1 image of the test classes is" if len(both) == 1 else f"{len(both):,} images of the test classes are"
        yield f"warning: {images} in the training classes too, such as {both[0][0]}, which is {both[0][1]}"


def _counts(split: Sequence[Listed]) -> dict[str, int]:
    queries = sum(bool(one.query) for one in split)
    return {"classes": len({one.label for one in split}), "images": len(split), "queries": queries}


def _labels(split: Iterable[Listed]) -> torch.Tensor:
    """Contiguous labels from 0, int64 [n], of images in the order of their classes."""
    numbers: dict[int | str, int] = {}
    return torch.tensor([numbers.setdefault(one.label, len(numbers)) for one in split], dtype=torch.int64)


def _names(split: Iterable[Listed]) -> tuple[str, ...]:
    """The names of the classes of images in the order of the classes."""
    return tuple({one.label: one.name or str(one.label) for one in split}.values())


def _queries(split: Sequence[Listed]) -> torch.Tensor | None:
    """Which images are queries, bool [n]; None where all are both query and searched."""
    if all(one.query is None for one in split):
        return None
    return torch.tensor([bool(one.query) for one in split])


def folder(root: Path, names: Sequence[str], holding: str) -> Path:
    """The first of the folders `names` of the data root, or the root itself, that holds the file or folder `holding`.

    Raises DataMissingError.
    """
    for candidate in (*(root / name for name in names), root):
        if (candidate / holding).exists():
            return candidate
    raise DataMissingError(
        f"{names[0]}/{holding} is missing: looked in {root.absolute()}; put the data set there, or set "
        "METRICSWEEP_DATA (or --data) to the folder that holds it"
    )


def rows(path: Path, fields: int, skip: int = 0) -> list[list[str]]:
    """The lines of a list file divided at blanks into `fields` fields, after `skip` lines of header.

    Raises DataMissingError, and DataDamagedError with the line that is not so.
    """
    table = []
    for number, line in enumerate(read_text(path).splitlines()[skip:], skip + 1):
        parts = line.split(maxsplit=fields - 1)
        if parts and len(parts) != fields:
            raise DataDamagedError(f"{path}: line {number} has {len(parts)} of {fields} fields; fetch it again")
        if parts:
            table.append(parts)
    if not table:
        raise DataDamagedError(f"{path} lists nothing; fetch it again")
    return table


def joined(path: Path, labels: Mapping[str, str], names: Mapping[str, str]) -> list[tuple[str, int]]:
    """(name, whole number) of each identifier; raises DataDamagedError where `path` and another list disagree."""
    if labels.keys() != names.keys():
        other = sorted(labels.keys() ^ names.keys())[0]
        raise DataDamagedError(f"{path}: image {other} is in one list only; fetch the data set again")
    return [(name, number(path, labels[key])) for key, name in names.items()]


def number(path: Path, text: str) -> int:
    """A class number of a list; raises DataDamagedError."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise DataDamagedError(f"{path}: expected the number of a class, found {text[:40]!r}")
    return int(text)
