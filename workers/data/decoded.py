"""The decoded data set of a machine: JPEG files to one memory map of bytes, built once and shared by all trainings."""

import hashlib
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
import PIL
import torch
from filelock import FileLock
from PIL import Image, ImageOps, features
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.contract import DataDamagedError, DataMissingError
from workers.data import looking
from workers.data.images import Images
from workers.data.scratch import UnsafeFolderError, opened, private

Resize = Literal["shorter", "square", "box", "keep"]

_FORMAT: Final = 1  # of the files below; another number builds anew
_CHUNK: Final = 2**26  # bytes hashed at a time by a thread
_NAMED: Final = 5  # files that a message names
_COMPARED: Final = 16  # images compared with their pictures at each opening
_EXCHANGED: Final = "somebody exchanged what was decoded: find out who, delete the folder, and it is decoded anew"
_chance: Final = random.SystemRandom()  # which leaves the generators of a training as they are
_UNREADABLE: Final = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)  # all of them are PIL's
_FAULT: Final = "cannot be read: it is cut off or no image"
_R = TypeVar("_R")


@dataclass(frozen=True)
class Picture:
    """An image as it lies on disk."""

    path: Path
    content: memoryview | None = None
    """Its bytes where `path` holds many images."""
    name: str = ""
    """What a message calls it, where it is not the path."""

    def __str__(self) -> str:
        return self.name or str(self.path)

    def open(self) -> Image.Image:
        """The image, not decoded yet."""
        return Image.open(self.path if self.content is None else BytesIO(self.content))


@dataclass(frozen=True)
class Form:
    """How an image is decoded: `shorter` brings its shorter side to `side` pixels, `square` both; `keep` neither.

    Resized by PIL's antialiased bilinear filter, sides rounded down, as torchvision's Resize; with `box` both sides, by
    the mean of the pixels that fall on each. The mode `ink` is grey with dark strokes made bright.
    """

    resize: Resize
    side: int = 0
    mode: Literal["RGB", "L", "ink"] = "RGB"

    @property
    def channels(self) -> int:
        """3 of colour, 1 of grey."""
        return 3 if self.mode == "RGB" else 1

    def shape(self, picture: Picture) -> tuple[int, int]:
        """The height and width that the image gets; reads no more than its header."""
        if self.resize in {"square", "box"}:
            return self.side, self.side
        with picture.open() as image:
            width, height = image.size
        if self.resize == "keep":
            return height, width
        if width <= height:
            return int(self.side * height / width), self.side
        return self.side, int(self.side * width / height)

    def decode(self, picture: Picture, into: np.ndarray) -> None:
        """Write the pixels to `into`, uint8 [channels, height, width]."""
        with picture.open() as image:
            converted = image.convert("L" if self.mode == "ink" else self.mode)
        if self.mode == "ink":
            converted = ImageOps.invert(converted)
        size = (into.shape[2], into.shape[1])
        if converted.size != size:
            resampling = Image.Resampling
            converted = converted.resize(size, resampling.BOX if self.resize == "box" else resampling.BILINEAR)
        pixels = np.asarray(converted)
        into[...] = pixels.transpose(2, 0, 1) if self.channels == 3 else pixels[None]


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
    folder = private(scratch / "decoded") / f"{name}-{_key(pictures, form)[:16]}"
    if (look := looking.current()) is not None:
        return _read(folder, trusting=True) or _sketched(pictures, form, look)
    if (found := _read(folder)) is not None:
        _compare(found, pictures, form, folder)
        return found
    with FileLock(f"{folder}.lock"):
        found = _read(folder)  # by now another process may have written it
        if found is None:
            _write(folder, pictures, form)
            found = _read(folder)
    if found is None:
        raise DataDamagedError(f"{folder}: what was written there is not what is read; check the disk")
    return found


def _key(pictures: Sequence[Picture], form: Form) -> str:
    """What the decoded data depends on: a hash of the form and of each file's name, size and time."""
    stats: dict[Path, tuple[int, int]] = {}
    missing = []
    for path in dict.fromkeys(picture.path for picture in pictures):
        try:
            status = path.stat()
            stats[path] = status.st_size, status.st_mtime_ns
        except OSError:
            missing.append(path)
    if missing:
        raise DataMissingError(_several(missing, "is missing", "put the files there, or fetch the data set again"))
    decoders = [PIL.__version__, *(features.version(name) for name in ("jpg", "libjpeg_turbo"))]
    digest = hashlib.sha256(json.dumps([_FORMAT, decoders, asdict(form)]).encode())
    for picture in pictures:
        digest.update(f"{picture}\0{stats[picture.path]}\n".encode())
    return digest.hexdigest()


def _several(files: Sequence[object], fault: str, advice: str) -> str:
    """A message about all of `files` that names the first ones."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    names = f" ({', '.join(map(str, files[1:_NAMED]))}{', ...' if len(files) > _NAMED else ''})" if more else ""
    return f"{files[0]} {fault}{more}{names}; {advice}"


def _sketched(pictures: Sequence[Picture], form: Form, look: looking.Look) -> Decoded:
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
        except _UNREADABLE as error:
            raise DataDamagedError(_several([picture], _FAULT, "fetch the data set again")) from error
        if not same or not np.array_equal(pixels[first : first + expected.size].reshape(shape), expected):
            raise DataDamagedError(f"{folder} holds another image than {picture}; {_EXCHANGED}")


def _write(folder: Path, pictures: Sequence[Picture], form: Form) -> None:
    """Decode into a folder aside and rename it; call it under the lock."""
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)  # of a process that was killed
    aside.mkdir()
    try:
        shapes = _shapes(pictures, form)
        _decode(aside / "pixels", pictures, form, shapes)
        np.save(aside / "shapes.npy", shapes)
        pixels = np.memmap(aside / "pixels", np.uint8, mode="r")
        about = {"digest": digest(pixels, shapes), "images": len(pictures), **asdict(form)}
        (aside / "about.json").write_text(json.dumps(about), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _shapes(pictures: Sequence[Picture], form: Form) -> np.ndarray:
    """First byte, channels, height and width of each image, int64 [n, 4]."""
    sizes = np.array(_each(lambda number: form.shape(pictures[number]), pictures, "headers"), np.int64).reshape(-1, 2)
    channels = np.full(len(sizes), form.channels)
    past = np.cumsum(channels * sizes[:, 0] * sizes[:, 1])
    first = np.concatenate([[0], past[:-1]])
    return np.column_stack([first, channels, sizes])


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

    _each(one, pictures, "images")
    pixels.flush()


def _each(work: Callable[[int], _R], pictures: Sequence[Picture], what: str) -> list[_R]:
    """`work` on the number of each picture, by as many threads as there are processors: PIL decodes without the lock.

    Raises DataDamagedError that says which are no image.
    """
    broken: list[Picture] = []

    def attempt(number: int) -> _R | None:
        try:
            return work(number)
        except _UNREADABLE:
            broken.append(pictures[number])
            return None

    with ThreadPoolExecutor(_processors()) as threads:
        results = threads.map(attempt, range(len(pictures)))
        # No bar where stderr is a file: a log is to be read.
        done = list(tqdm(results, desc=f"decoding {what}", total=len(pictures), disable=None))
    if broken:
        raise DataDamagedError(_several(sorted(broken, key=str), _FAULT, "fetch the data set again"))
    return cast("list[_R]", done)


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def digest(pixels: np.ndarray, shapes: np.ndarray) -> str:
    """SHA-256 over the shapes and over the SHA-256 of each chunk of the pixels, by all processors."""
    chunks = range(0, len(pixels), _CHUNK)
    with ThreadPoolExecutor(_processors()) as threads:
        found = threads.map(lambda first: hashlib.sha256(pixels[first : first + _CHUNK].data).digest(), chunks)
        whole = hashlib.sha256(shapes.astype("<i8").tobytes())
        for one in found:
            whole.update(one)
    return f"sha256:{whole.hexdigest()}"
