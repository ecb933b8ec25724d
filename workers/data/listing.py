"""Data sets from lists of labelled image files, and from CIFAR's files."""

import hashlib
import io
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from workers.contract import DataDamagedError
from workers.data.decoded import damaged_among, stored
from workers.data.file_content import digests, missing
from workers.data.images import Images, miscounts
from workers.data.pictures import Form, Picture, check_steps, find, read_jpegs, read_labels, read_text, reading

_MOST_DIGITS: Final = 18


class Listed(NamedTuple):
    """An image file in a list, with its class as the data set numbers or names it."""

    picture: Picture
    label: int | str
    query: bool | None = None
    name: str | None = None  # the name of the class for people; None means the label


@dataclass(frozen=True)
class Source:
    """How the images of a list are decoded and checked."""

    name: str
    form: Form
    scratch: Path
    declaring: object = None  # the data set's class, which states the official counts
    official: bool = False  # whether other counts are refused
    on_error: Literal["stop", "skip"] = "stop"
    """Whether images that cannot be decoded are an error, or are left out."""


def load(
    source: Source, train: Sequence[Listed], test: Sequence[Listed]
) -> tuple[Images, Images, str, tuple[str, ...]]:
    """Decodes the listed images of both splits; returns them, their hash, and notes such as on images in both.

    Images are ordered by class, and labels count from 0 in the order of the classes. Raises DataDamagedError for
    unofficial counts, before anything is decoded, and what `decoded` raises unless damaged images are skipped.
    """
    (first, second), content = _load(source, {"train": train, "test": test})
    skipped = {*first.skipped, *second.skipped}
    train, test = ([image for image in half if str(image.picture) not in skipped] for half in (train, test))
    return first, second, content, () if source.official else tuple(_shared(train, test, source.scratch))


def load_half(source: Source, name: Literal["train", "test"], listed: Sequence[Listed]) -> tuple[Images, str]:
    """Decodes the listed images of a single split; returns them and their hash."""
    (only,), content = _load(source, {name: listed})
    return only, content


def _load(source: Source, halves: Mapping[str, Sequence[Listed]]) -> tuple[list[Images], str]:
    counted = {name: _counts(split) for name, split in halves.items()}
    wrong = miscounts(source.declaring, counted) if source.official else []
    wrong += [f"{name} has no images" for name, counts in counted.items() if not counts["images"]]
    if wrong:
        advice = "fetch the data set again, or set its `official: false` to train on a part of it"
        raise DataDamagedError(f"{source.name}: {'; '.join(wrong)}; {advice}")
    every = [sorted(split, key=lambda image: image.label) for split in halves.values()]
    damaged = frozenset[str]()
    if source.on_error == "skip":
        listed = [image.picture for split in every for image in split]
        damaged = damaged_among(source.name, listed, source.form, source.scratch)
    ordered = [[image for image in split if str(image.picture) not in damaged] for split in every]
    if not all(ordered):
        raise DataDamagedError(f"{source.name}: no image of a split can be decoded; fetch the data set again")
    pixels = stored(source.name, [image.picture for split in ordered for image in split], source.form, source.scratch)
    labels = [_labels(split) for split in ordered]
    content = hashlib.sha256(pixels.digest.encode())
    for numbers in labels:
        content.update(f"{len(numbers)}".encode() + numbers.numpy().astype("<i8").tobytes())
    images, first = [], 0
    for whole, split, numbers in zip(every, ordered, labels, strict=True):
        rows = range(first, first + len(split))
        skipped = tuple(str(image.picture) for image in whole if str(image.picture) in damaged)
        labelled = pixels.split(rows, numbers, _queries(split))
        names = tuple({image.label: image.name or str(image.label) for image in split}.values())
        images.append(replace(labelled, names=names, skipped=skipped, form=source.form))
        first = rows.stop
    return images, f"sha256:{content.hexdigest()}"


def _shared(train: Sequence[Listed], test: Sequence[Listed], scratch: Path) -> Iterator[str]:
    """A warning about files with equal content in both splits."""
    lying = digests({str(image.picture.path) for image in (*train, *test) if image.picture.content is None}, scratch)

    def digest(picture: Picture) -> str:
        if picture.content is None:
            return lying[os.path.abspath(picture.path)]
        return hashlib.sha256(picture.content).hexdigest()

    yield from shared(*([(digest(image.picture), str(image.picture)) for image in split] for split in (train, test)))


def shared(train: Iterable[tuple[str, str]], test: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A warning on images, (hash, name) each, that occur with equal hashes in both splits."""
    trained = dict(train)
    both = [(name, trained[digest]) for digest, name in test if digest in trained]
    if both:
        images = "1 image of the test classes is" if len(both) == 1 else f"{len(both):,} images of the test classes are"
        yield f"warning: {images} in the training classes too, such as {both[0][0]}, which is {both[0][1]}"


def _counts(split: Sequence[Listed]) -> dict[str, int]:
    queries = sum(bool(image.query) for image in split)
    return {"classes": len({image.label for image in split}), "images": len(split), "queries": queries}


def _labels(split: Iterable[Listed]) -> torch.Tensor:
    """Labels from 0, int64 [n], of images ordered by class."""
    numbers: dict[int | str, int] = {}
    return torch.tensor([numbers.setdefault(image.label, len(numbers)) for image in split], dtype=torch.int64)


def _queries(split: Sequence[Listed]) -> torch.Tensor | None:
    """Which images are queries, bool [n]; None if all are both query and searched."""
    if all(image.query is None for image in split):
        return None
    return torch.tensor([bool(image.query) for image in split])


def folder(root: Path, names: Sequence[str], *holding: str) -> Path:
    """The first of the folders `names` of the data root, or the root itself, that contains one of `holding`.

    Raises DataMissingError.
    """
    for candidate in (*(root / name for name in names), root):
        if any((candidate / name).exists() for name in holding):
            return candidate
    raise missing(f"{names[0]}/{holding[0]} is missing: looked in {root.absolute()}", "the data set")


def rows(path: Path, fields: int, skip: int = 0) -> list[list[str]]:
    """The lines of a list file after `skip` lines, split at blanks into `fields` fields.

    Raises DataMissingError, and DataDamagedError with the line.
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
    """Joins two lists to the (name, class number) of each identifier; DataDamagedError if they disagree."""
    if labels.keys() != names.keys():
        other = sorted(labels.keys() ^ names.keys())[0]
        raise DataDamagedError(f"{path}: image {other} is in one list only; fetch the data set again")
    return [(name, number(path, labels[key])) for key, name in names.items()]


def number(path: Path, text: str) -> int:
    """Parses a class number in the list file `path`; raises DataDamagedError."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise DataDamagedError(f"{path}: expected the number of a class, found {text[:40]!r}")
    return int(text)


HALVES: Final = ("train", "test")

_PIXELS: Final = 3 * 32 * 32
_MOST_TUPLES: Final = 100  # an array takes four
_TEN: Final = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_Reader = Callable[[bytes], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


def ten(root: Path, half: str) -> Images:
    """A half of CIFAR-10; raises DataMissingError, DataDamagedError."""
    files = [f"data_batch_{number}" for number in range(1, 6)] if half == "train" else ["test_batch"]
    read = _half(root, "cifar-10-batches-py", files, "cifar-10-batches-bin", label=b"labels", before=1)
    return replace(read, names=_TEN) if read.classes == len(_TEN) else read


def hundred(root: Path, half: str) -> Images:
    """A half of CIFAR-100 with its fine labels; raises DataMissingError, DataDamagedError."""
    return _half(root, "cifar-100-python", [half], "cifar-100-binary", label=b"fine_labels", before=2)


def jpegs(root: Path, name: str, scratch: Path) -> Images:
    """Loads one split of CIFAR-10 from a pack of JPEG files; raises DataMissingError, DataDamagedError."""
    path = find(root, [name])
    labels = read_labels(path)
    pictures = read_jpegs(path, len(labels))
    pixels = stored(path.stem, pictures, Form("square", 32), scratch)
    return pixels.split(range(len(labels)), contiguous(labels))


def _half(root: Path, python: str, names: Sequence[str], binary: str, *, label: bytes, before: int) -> Images:
    """The images of the files `names`; in a binary file, `before` labels precede an image, the fine one last."""
    if (root / python).is_dir():
        paths, read = [root / python / name for name in names], partial(_pickled, label=label)
    elif (root / binary).is_dir():
        paths, read = [root / binary / f"{name}.bin" for name in names], partial(_binary, before=before)
    else:
        raise missing(f"{python} is missing: looked in {root.absolute()} for it and for {binary}", "the folder")
    images, labels = zip(*(_checked(path, read) for path in paths), strict=True)
    pixels = torch.from_numpy(np.concatenate(images).reshape(-1, 3, 32, 32))
    return Images(pixels, contiguous(np.concatenate(labels)))


def contiguous(labels: npt.NDArray[Any]) -> torch.Tensor:
    """Labels renumbered from 0 in their order, int64 [n]."""
    return torch.from_numpy(np.unique(labels, return_inverse=True)[1].astype(np.int64))


def _checked(path: Path, read: _Reader) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Pixels uint8 [n, 3072] and labels [n] of a file; raises DataMissingError, DataDamagedError."""
    with reading(path):
        pixels, labels = read(path.read_bytes())
    if pixels.dtype != np.uint8 or pixels.shape != (len(labels), _PIXELS):
        raise DataDamagedError(f"{path}: expected {len(labels):,} images of {_PIXELS:,} bytes, found {pixels.shape}")
    return pixels, labels


def _binary(content: bytes, before: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    records = np.frombuffer(content, np.uint8).reshape(-1, before + _PIXELS)
    return records[:, before:], records[:, before - 1]


def _pickled(content: bytes, label: bytes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    check_steps(content, _MOST_TUPLES)
    batch = _Arrays(io.BytesIO(content), encoding="bytes").load()
    return np.asarray(batch[b"data"]), np.asarray(batch[label], np.int64)


class _Arrays(pickle.Unpickler):
    """Loads only arrays, since pickles can run code."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "_reconstruct" and module in {"numpy.core.multiarray", "numpy._core.multiarray"}:
            return np.empty(0).__reduce__()[0]
        if module == "numpy" and name in {"ndarray", "dtype"}:
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes in an old protocol
            return _latin1
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR file does")


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding[:40]!r}, which no CIFAR file does")
    return text.encode("latin1")
