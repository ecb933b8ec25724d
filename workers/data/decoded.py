"""Decoded and encoded images in the scratch folder: made once, under a lock, shared by all processes."""

import hashlib
import json
import math
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.contract import DataDamagedError
from workers.data.file_content import note
from workers.data.images import Images, Look, current
from workers.data.pictures import (
    UNREADABLE,
    Broken,
    Form,
    Picture,
    disk_limit,
    each,
    key,
    processors,
    shapes_of,
    unreadable,
)
from workers.data.scratch import UnsafeFolderError, built, named, opened, private

HASHED: Final = 2**26
"""Bytes that are hashed at a time by a thread."""

_COMPARED: Final = 16  # images compared with their pictures at each opening
_EXCHANGED: Final = "somebody exchanged what was decoded: find out who, delete the folder, and it is decoded anew"
_chance: Final = random.SystemRandom()  # which leaves the generators of a training as they are


@dataclass(frozen=True)
class Decoded:
    """All images of a data set in order, in a memory map that other processes share."""

    pixels: torch.Tensor  # uint8, flat
    shapes: torch.Tensor  # int64 [n, 4]: first byte, channels, height, width
    digest: str  # of pixels and shapes

    def split(self, rows: range, labels: torch.Tensor, query: torch.Tensor | None = None) -> Images:
        """The images at `rows` as a split; nothing is copied."""
        shapes = self.shapes[rows.start : rows.stop]
        if not len(shapes) or bool((self.shapes[:, 1:] != self.shapes[0, 1:]).any()):
            return Images(self.pixels, labels, shapes, query)
        dense = self.pixels.view(-1, *self.shapes[0, 1:].tolist())
        return Images(dense[rows.start : rows.stop], labels, None, query)


def decoded(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Decoded:
    """The decoded `pictures`, from the folder `scratch` where a process of this machine has been before.

    They are decoded anew where the files, the form or what decodes them have changed, or where what is there has
    another hash than when it was written. Raises DataMissingError and DataDamagedError, which name the files;
    UnsafeFolderError where another account could exchange what is read; and OSError on a full disk. While somebody only
    looks at the data set nothing is decoded, and what is there is not hashed again.
    """
    folder = private(scratch / "decoded") / named(name, key(pictures, form, scratch))
    if (look := current()) is not None:
        return _read(folder, trusting=True) or sketched(pictures, form, look)
    if (images := _read(folder)) is not None:
        _compare(images, pictures, form, folder)
        return images
    return built(folder, lambda: _read(folder), lambda aside: _write(aside, pictures, form))


def sketched(pictures: Sequence[Picture], form: Form, look: Look) -> Decoded:
    """As many images of one pixel; their digest is that of nothing."""
    look.undecoded = True
    shapes = torch.ones(len(pictures), 4, dtype=torch.int64)
    shapes[:, 0], shapes[:, 1] = torch.arange(len(pictures)) * form.channels, form.channels
    return Decoded(torch.zeros(len(pictures) * form.channels, dtype=torch.uint8), shapes, "")


def _read(folder: Path, *, trusting: bool = False) -> Decoded | None:
    """What is in the folder; None where it is absent or, unless `trusting`, not what was written."""
    try:
        with opened(folder / "about.json") as file:
            about: dict[str, Any] = json.load(file)
        with opened(folder / "shapes.npy") as file:
            shapes = np.load(file, allow_pickle=False)
        # Copy on write: torch warns of read-only memory, and nobody can spoil what others read.
        with opened(folder / "pixels") as file:
            pixels = np.memmap(file, np.uint8, mode="c")
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None
    if not trusting and about.get("digest") != digest(pixels, shapes):
        print(f"{folder} is damaged: decoding anew", file=sys.stderr, flush=True)
        return None
    return Decoded(torch.from_numpy(pixels), torch.from_numpy(shapes), about["digest"])


def _compare(found: Decoded, pictures: Sequence[Picture], form: Form, folder: Path) -> None:
    """Decode some images once more, others each time, and raise DataDamagedError where there are other pixels.

    Its hash lies beside the map, so whoever exchanges both is only found out by the pictures themselves.
    """
    pixels, shapes = found.pixels.numpy(), found.shapes.tolist()
    if len(shapes) != len(pictures):
        raise DataDamagedError(f"{folder} holds {len(shapes):,} images and not these {len(pictures):,}; {_EXCHANGED}")
    for number in _chance.sample(range(len(pictures)), min(_COMPARED, len(pictures))):
        (first, *shape), picture = shapes[number], pictures[number]
        expected = np.zeros(shape, np.uint8)
        try:
            same = shape == [form.channels, *form.shape(picture)]
            if same:
                form.decode(picture, expected)
        except UNREADABLE as error:
            raise unreadable([Broken(picture, error)]) from error
        if not same or not np.array_equal(pixels[first : first + expected.size].reshape(shape), expected):
            raise DataDamagedError(f"{folder} holds another image than {picture}; {_EXCHANGED}")


def _write(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    shapes = shapes_of(pictures, form)
    _decode(folder / "pixels", pictures, form, shapes)
    np.save(folder / "shapes.npy", shapes)
    pixels = np.memmap(folder / "pixels", np.uint8, mode="r")
    about = {"digest": digest(pixels, shapes), "images": len(pictures), **asdict(form)}
    (folder / "about.json").write_text(json.dumps(about), "utf-8")


def _decode(path: Path, pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> None:
    total = int(shapes[:, 1:].prod(axis=1).sum())
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now and not a fault of the memory map later
            os.posix_fallocate(file.fileno(), 0, total)
        file.truncate(total)
    pixels = np.memmap(path, np.uint8, mode="r+")

    def one(number: int) -> None:
        first, *shape = shapes[number].tolist()
        form.decode(pictures[number], pixels[first : first + int(np.prod(shape))].reshape(shape))

    each(one, pictures, "images")
    pixels.flush()


def digest(pixels: np.ndarray, shapes: np.ndarray) -> str:
    """SHA-256 over the shapes and over the SHA-256 of each chunk of the pixels, by all processors."""
    chunks = range(0, len(pixels), HASHED)
    with ThreadPoolExecutor(processors()) as threads:
        found = threads.map(lambda first: hashlib.sha256(pixels[first : first + HASHED].data).digest(), chunks)
        whole = hashlib.sha256(shapes.astype("<i8").tobytes())
        for one in found:
            whole.update(one)
    return f"sha256:{whole.hexdigest()}"


SETTING: Final = "METRICSWEEP_DECODED_GB"
"""The environment variable that says from which size on the images of a data set stay as they are."""
USUAL: Final = 32.0
"""Where it says nothing: what the photographs of SOP need at 256 pixels fits, those of ImageNet do not."""

_MEASURED: Final = 1_000  # headers by which the size of all images is estimated
_TOGETHER: Final = 32  # images of a thread that are decoded before they are hashed


@dataclass(frozen=True)
class Encoded:
    """All images of a data set in order, as they lie on disk."""

    pictures: Sequence[Picture]
    form: Form
    shapes: torch.Tensor  # int64 [n, 4]: first byte if they were decoded, channels, height, width
    digest: str  # of pixels and shapes, as of the same images decoded

    def split(self, rows: range, labels: torch.Tensor, query: torch.Tensor | None = None) -> Images:
        """The images at `rows` as a split."""
        shapes = self.shapes[rows.start : rows.stop].clone()
        shapes[:, 0] = torch.arange(rows.start, rows.stop)
        return Images(torch.zeros(0, dtype=torch.uint8), labels, shapes, query, undecoded=self)

    def decode(self, number: int, into: torch.Tensor) -> None:
        """Write the pixels of an image to `into`, uint8 [channels, height, width]; raises DataDamagedError."""
        try:
            self.form.decode(self.pictures[number], into.numpy())
        except UNREADABLE as error:  # it was not so when all of them were looked at
            raise unreadable([Broken(self.pictures[number], error)]) from error


def stored(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Decoded | Encoded:
    """The `pictures` decoded once per machine, or as they are where that would take more than METRICSWEEP_DECODED_GB.

    Raises what `decoded` raises, and ValueError where the setting is no number. The pixels are the same either way.
    """
    note(*{picture.path for picture in pictures})
    return (encoded if _size(pictures, form) > limit() else decoded)(name, pictures, form, scratch)


def limit() -> float:
    """The bytes that decoded images of a data set may take; raises ValueError."""
    return disk_limit(SETTING, USUAL, "from 0 on", lambda gigabytes: gigabytes >= 0)


def _size(pictures: Sequence[Picture], form: Form) -> float:
    """About how many bytes the decoded images take, by the headers of some of them; 0 where these cannot be read."""
    some = pictures[:: math.ceil(len(pictures) / _MEASURED) or 1]
    try:
        return sum(form.channels * math.prod(form.shape(one)) for one in some) / max(1, len(some)) * len(pictures)
    except UNREADABLE:  # which is told with all others that are missing or damaged
        return 0


def encoded(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Encoded | Decoded:
    """The `pictures` as they are, once each of them was decoded on this machine: what is damaged is told before a step.

    What that found, shapes and a hash, is kept in `scratch`. Raises what `decoded` raises. While somebody only looks at
    the data set nothing is decoded.
    """
    folder = private(scratch / "encoded") / named(name, key(pictures, form, scratch))
    images = _read_encoded(folder, pictures, form)
    if images is not None:
        return images
    if (look := current()) is not None:
        return sketched(pictures, form, look)
    return built(
        folder, lambda: _read_encoded(folder, pictures, form), lambda aside: _write_encoded(aside, pictures, form)
    )


def _read_encoded(folder: Path, pictures: Sequence[Picture], form: Form) -> Encoded | None:
    """What was found of the pictures before; None where nothing is there, or something else."""
    try:
        with opened(folder / "about.json") as file:
            about: dict[str, Any] = json.load(file)
        with opened(folder / "shapes.npy") as file:
            shapes = np.load(file, allow_pickle=False)
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None
    if shapes.shape != (len(pictures), 4) or about.get("shapes") != hashlib.sha256(shapes.tobytes()).hexdigest():
        return None
    return Encoded(pictures, form, torch.from_numpy(shapes), about["digest"])


def _write_encoded(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    """Decode every picture once and keep what is known then."""
    shapes = shapes_of(pictures, form)
    about = {"digest": _digest(pictures, form, shapes), "shapes": hashlib.sha256(shapes.tobytes()).hexdigest()}
    np.save(folder / "shapes.npy", shapes)
    (folder / "about.json").write_text(json.dumps({**about, "images": len(pictures), **asdict(form)}), "utf-8")


def _digest(pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> str:
    """What `workers.data.decoded.digest` gives of the same images, with few of them in memory at a time."""
    whole, chunk, room = hashlib.sha256(shapes.astype("<i8").tobytes()), hashlib.sha256(), HASHED
    for pixels in _pixels(pictures, form, shapes):
        left = pixels.data
        while len(left) >= room:
            chunk.update(left[:room])
            whole.update(chunk.digest())
            left, chunk, room = left[room:], hashlib.sha256(), HASHED
        chunk.update(left)
        room -= len(left)
    if room < HASHED:
        whole.update(chunk.digest())
    return f"sha256:{whole.hexdigest()}"


def _pixels(pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> Iterator[np.ndarray]:
    """The pixels of each picture in order, flat; raises DataDamagedError that says which cannot be decoded."""
    broken: list[Broken] = []

    def one(number: int) -> np.ndarray:
        pixels = np.zeros(shapes[number, 1:], np.uint8)
        try:
            form.decode(pictures[number], pixels)
        except UNREADABLE as error:
            broken.append(Broken(pictures[number], error))
        return pixels.reshape(-1)

    together = _TOGETHER * processors()
    with ThreadPoolExecutor(processors()) as threads, tqdm(total=len(pictures), desc="decoding", disable=None) as bar:
        for first in range(0, len(pictures), together):
            block = range(first, min(first + together, len(pictures)))
            yield from threads.map(one, block)
            bar.update(len(block))
    if broken:
        raise unreadable(broken)
