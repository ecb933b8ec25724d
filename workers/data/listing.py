"""From a list of labelled image files to a data set: labels, counts, decoding; what the real data sets share."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, NamedTuple

import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data.encoded import stored
from workers.data.file_content import note_folder
from workers.data.images import Images, miscounts
from workers.data.packs import read_text
from workers.data.picture import Form, Picture


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
    return Content(first, second, content)


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


_MOST_DIGITS: Final = 18
_SUFFIXES: Final = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff", ".gif"}


def class_folders(folder: Path) -> dict[str, list[Listed]]:
    """The images of each class, in the order of their paths, of a folder with a folder for each class.

    Hidden files and files with another suffix than that of an image are no images. Raises DataMissingError,
    DataDamagedError.
    """
    if not folder.is_dir():
        raise DataMissingError(
            f"the folder {folder.name} is missing: looked in {folder.parent.absolute()}; put it there, or set "
            "METRICSWEEP_DATA (or --data) to the folder that holds it"
        )
    classes: dict[str, list[Listed]] = {}
    for entry in _entries(folder):
        if entry.is_dir() and (files := [Listed(Picture(Path(path)), entry.name) for path in _files(entry.path)]):
            classes[entry.name] = files
    if len(classes) < 2:
        raise DataDamagedError(f"{folder}: expected folders of images, one a class; found {len(classes)}")
    return classes


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is in a folder and not hidden, by name."""
    note_folder(folder)
    with os.scandir(folder) as entries:
        return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)


def _files(folder: str) -> Iterator[str]:
    """The images in a folder at any depth; a million files are listed in seconds, where pathlib takes a minute."""
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path)
        elif os.path.splitext(entry.name)[1].lower() in _SUFFIXES and entry.is_file():  # noqa: PTH122 - see above
            yield entry.path


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
