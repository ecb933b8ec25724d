"""Decoded and encoded images in the scratch folder: written once, under a lock, and shared by all processes."""

import hashlib
import json
import math
import random
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from workers.contract import DataDamagedError
from workers.data.file_content import Reading, inspected, note
from workers.data.images import Images
from workers.data.pictures import (
    UNREADABLE,
    Form,
    Picture,
    UnreadableError,
    disk_limit,
    each,
    key,
    processors,
    shapes_of,
    unreadable,
)
from workers.data.scratch import UnsafeFolderError, allocate, built, named, opened, private

HASHED: Final = 2**26
"""Bytes that a thread hashes at a time."""

_COMPARED: Final = 16  # images compared with their pictures at each opening
_EXCHANGED: Final = "somebody exchanged what was decoded: find out who, delete the folder, and it is decoded anew"
_chance: Final = random.SystemRandom()  # it does not affect the generators of a training

SETTING: Final = "METRICSWEEP_DECODED_GB"
"""The environment variable for the size above which the images of a data set stay encoded."""
USUAL: Final = 32.0
"""The default in gigabytes: the photographs of SOP at 256 pixels fit, those of ImageNet do not."""

_MEASURED: Final = 1_000  # headers by which the size of all images is estimated
_DAMAGED: Final = "damaged.json"


@dataclass(frozen=True)
class Decoded:
    """All decoded images of a data set in order, in a memory map that processes share."""

    pixels: torch.Tensor  # uint8, flat
    shapes: torch.Tensor  # int64 [n, 4]: first byte, channels, height, width
    digest: str  # of pixels and shapes

    def split(self, rows: range, labels: torch.Tensor, query: torch.Tensor | None = None) -> Images:
        """The images at `rows` as a split, without a copy."""
        shapes = self.shapes[rows.start : rows.stop]
        if not len(shapes) or bool((self.shapes[:, 1:] != self.shapes[0, 1:]).any()):
            return Images(self.pixels, labels, shapes, query)
        dense = self.pixels.view(-1, *self.shapes[0, 1:].tolist())
        return Images(dense[rows.start : rows.stop], labels, None, query)


@dataclass(frozen=True)
class Encoded:
    """All images of a data set in order, kept as encoded files and decoded when needed."""

    pictures: Sequence[Picture]
    form: Form
    shapes: torch.Tensor  # int64 [n, 4]: first byte if they were decoded, channels, height, width
    digest: str  # of pixels and shapes, as of the same images decoded

    def split(self, rows: range, labels: torch.Tensor, query: torch.Tensor | None = None) -> Images:
        shapes = self.shapes[rows.start : rows.stop].clone()
        shapes[:, 0] = torch.arange(rows.start, rows.stop)
        return Images(torch.zeros(0, dtype=torch.uint8), labels, shapes, query, undecoded=self.decode)

    def decode(self, number: int, into: torch.Tensor) -> None:
        """Decode an image into the array `into`, uint8 [channels, height, width]; raises DataDamagedError."""
        try:
            self.form.decode(self.pictures[number], into.numpy())
        except UNREADABLE as error:  # it has changed since all were checked
            raise unreadable([(self.pictures[number], error)]) from error


def stored(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Decoded | Encoded:
    """The images of a data set, decoded if they take at most METRICSWEEP_DECODED_GB, and otherwise encoded.

    Raises what `decoded` raises, and ValueError for an invalid setting.
    """
    note(*{picture.path for picture in pictures})
    return (encoded if _size(pictures, form) > limit() else decoded)(name, pictures, form, scratch)


def damaged_among(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> frozenset[str]:
    """The names of the pictures that cannot be decoded.

    They are decided when this machine decodes these files for the first time, and kept in `scratch`; before that,
    an inspection finds none. Raises what `stored` raises of pictures that another machine may be able to read.
    """
    note(*{picture.path for picture in pictures})

    def decide(folder: Path) -> None:
        damaged: frozenset[str] = frozenset()
        while readable := [picture for picture in pictures if str(picture) not in damaged]:
            try:
                stored(name, readable, form, scratch)
                break
            except UnreadableError as error:
                if not error.damaged:
                    raise
                damaged |= error.damaged
        (folder / _DAMAGED).write_text(json.dumps(sorted(damaged)), "utf-8")

    folder = private(scratch / "damaged") / named(name, key(pictures, form, scratch))
    damaged = _read_damaged(folder)
    if damaged is None:
        damaged = frozenset() if inspected() else built(folder, lambda: _read_damaged(folder), decide)
    return damaged


def _read_damaged(folder: Path) -> frozenset[str] | None:
    """The names of pictures that cannot be decoded; None if they are not decided yet."""
    try:
        with opened(folder / _DAMAGED) as file:
            return frozenset(json.load(file))
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None


def encoded(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Encoded | Decoded:
    """The images of a data set as encoded files, after each was decoded once on this machine to find damage early.

    Their shapes and a hash are kept in `scratch`. Raises what `decoded` raises. In an inspection nothing is decoded.
    """
    folder = private(scratch / "encoded") / named(name, key(pictures, form, scratch))
    images = _read_encoded(folder, pictures, form)
    if images is not None:
        return images
    if (inspecting := inspected()) is not None:
        return _sketched(pictures, form, inspecting)
    return built(
        folder, lambda: _read_encoded(folder, pictures, form), lambda aside: _write_encoded(aside, pictures, form)
    )


def _read_encoded(folder: Path, pictures: Sequence[Picture], form: Form) -> Encoded | None:
    """The stored shapes and hash; None if they are missing or damaged."""
    if (described := _described(folder)) is None:
        return None
    about, shapes = described
    if shapes.shape != (len(pictures), 4) or about.get("shapes") != hashlib.sha256(shapes.tobytes()).hexdigest():
        return None
    return Encoded(pictures, form, torch.from_numpy(shapes), about["digest"])


def _described(folder: Path) -> tuple[dict[str, Any], np.ndarray] | None:
    """The stored facts and shapes; None if they are missing or damaged."""
    try:
        with opened(folder / "about.json") as file, opened(folder / "shapes.npy") as shapes:
            return json.load(file), np.load(shapes, allow_pickle=False)
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None


def _sketched(pictures: Sequence[Picture], form: Form, inspecting: Reading) -> Decoded:
    """Images of one pixel, with an empty digest."""
    inspecting.undecoded = True
    shapes = torch.ones(len(pictures), 4, dtype=torch.int64)
    shapes[:, 0], shapes[:, 1] = torch.arange(len(pictures)) * form.channels, form.channels
    return Decoded(torch.zeros(len(pictures) * form.channels, dtype=torch.uint8), shapes, "")


def _write_encoded(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    shapes = shapes_of(pictures, form)
    about = {"digest": _digest(pictures, form, shapes), "shapes": hashlib.sha256(shapes.tobytes()).hexdigest()}
    np.save(folder / "shapes.npy", shapes)
    (folder / "about.json").write_text(json.dumps({**about, "images": len(pictures), **asdict(form)}), "utf-8")


def _digest(pictures: Sequence[Picture], form: Form, shapes: np.ndarray) -> str:
    """The same as `digest` of the decoded images, with few of them in memory."""

    def decode(number: int) -> np.ndarray:
        pixels = np.zeros(shapes[number, 1:], np.uint8)
        form.decode(pictures[number], pixels)
        return pixels.reshape(-1)

    whole, chunk, room = hashlib.sha256(shapes.astype("<i8").tobytes()), hashlib.sha256(), HASHED
    for pixels in each(decode, pictures, "decoding"):
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


def _size(pictures: Sequence[Picture], form: Form) -> float:
    """The estimated bytes of the decoded images, from some headers; 0 if these cannot be read."""
    some = pictures[:: math.ceil(len(pictures) / _MEASURED) or 1]
    try:
        mean = sum(math.prod(form.shape(picture)) for picture in some) / max(1, len(some))
        return form.channels * mean * len(pictures)
    except UNREADABLE:  # it is reported later, with all other missing or damaged files
        return 0


def limit() -> float:
    """The limit METRICSWEEP_DECODED_GB for the decoded images of a data set, in bytes; raises ValueError."""
    return disk_limit(SETTING, USUAL, "from 0 on", lambda gigabytes: gigabytes >= 0)


def decoded(name: str, pictures: Sequence[Picture], form: Form, scratch: Path) -> Decoded:
    """The decoded images of a data set, from the folder `scratch` if this machine has decoded them before.

    They are decoded again if the files, the form or the decoder have changed, or if the stored hash does not match.
    Raises DataMissingError and DataDamagedError, which name the files; UnsafeFolderError if another account could
    replace what is read; and OSError on a full disk. In an inspection nothing is decoded, and stored pixels are not
    hashed again.
    """
    folder = private(scratch / "decoded") / named(name, key(pictures, form, scratch))
    if (inspecting := inspected()) is not None:
        return _read(folder, trusting=True) or _sketched(pictures, form, inspecting)
    if (images := _read(folder)) is not None:
        _compare(images, pictures, form, folder)
        return images
    return built(folder, lambda: _read(folder), lambda aside: _write(aside, pictures, form))


def _read(folder: Path, *, trusting: bool = False) -> Decoded | None:
    """The stored images; None if they are missing or, unless `trusting`, if the hash does not match."""
    try:
        # Copy on write: torch warns about read-only memory, and nobody can change what others read.
        with opened(folder / "pixels") as file:
            pixels = np.memmap(file, np.uint8, mode="c")
    except UnsafeFolderError:
        raise
    except (OSError, ValueError):
        return None
    if (described := _described(folder)) is None:
        return None
    about, shapes = described
    if not trusting and about.get("digest") != digest(pixels, shapes):
        print(f"{folder} is damaged: decoding anew", file=sys.stderr, flush=True)
        return None
    return Decoded(torch.from_numpy(pixels), torch.from_numpy(shapes), about["digest"])


def digest(pixels: np.ndarray, shapes: np.ndarray) -> str:
    """A hash of decoded images: SHA-256 over the shapes and the SHA-256 of each chunk of pixels."""
    chunks = range(0, len(pixels), HASHED)
    with ThreadPoolExecutor(processors()) as threads:
        found = threads.map(lambda first: hashlib.sha256(pixels[first : first + HASHED].data).digest(), chunks)
        whole = hashlib.sha256(shapes.astype("<i8").tobytes())
        for chunk in found:
            whole.update(chunk)
    return f"sha256:{whole.hexdigest()}"


def _compare(found: Decoded, pictures: Sequence[Picture], form: Form, folder: Path) -> None:
    """Decode a random sample of images again, and raise DataDamagedError if the pixels differ.

    The hash is stored with the pixels, so that only the pictures show if somebody replaced both.
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
            raise unreadable([(picture, error)]) from error
        if not same or not np.array_equal(pixels[first : first + expected.size].reshape(shape), expected):
            raise DataDamagedError(f"{folder} holds another image than {picture}; {_EXCHANGED}")


def _write(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    shapes = shapes_of(pictures, form)
    allocate(folder / "pixels", int(shapes[:, 1:].prod(axis=1).sum()))
    pixels = np.memmap(folder / "pixels", np.uint8, mode="r+")

    def decode(number: int) -> None:
        first, *shape = shapes[number].tolist()
        form.decode(pictures[number], pixels[first : first + math.prod(shape)].reshape(shape))

    deque(each(decode, pictures, "decoding images"), maxlen=0)
    pixels.flush()
    np.save(folder / "shapes.npy", shapes)
    about = {"digest": digest(pixels, shapes), "images": len(pictures), **asdict(form)}
    (folder / "about.json").write_text(json.dumps(about), "utf-8")
