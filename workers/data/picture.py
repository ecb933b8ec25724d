"""Pictures: images as they lie on disk, the form that each is decoded to, and all of a data set at once."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

import numpy as np
import PIL
from PIL import Image, ImageOps, features
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.contract import DataDamagedError, DataMissingError

Resize = Literal["shorter", "square", "box", "keep"]

UNREADABLE: Final = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
"""What PIL raises of a file that is no image or is cut off."""

_FORMAT: Final = 1  # of what is decoded; another number decodes anew
_NAMED: Final = 5  # files that a message names
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
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


def key(pictures: Sequence[Picture], form: Form) -> str:
    """What decoded pictures depend on: a hash of the form and of each file's name, size and time."""
    stats: dict[Path, tuple[int, int]] = {}
    missing = []
    for path in dict.fromkeys(picture.path for picture in pictures):
        try:
            status = path.stat()
            stats[path] = status.st_size, status.st_mtime_ns
        except OSError:
            missing.append(path)
    if missing:
        raise DataMissingError(several(missing, "is missing", "put the files there, or fetch the data set again"))
    decoders = [PIL.__version__, *(features.version(name) for name in ("jpg", "libjpeg_turbo"))]
    digest = hashlib.sha256(json.dumps([_FORMAT, decoders, asdict(form)]).encode())
    for picture in pictures:
        digest.update(f"{picture}\0{stats[picture.path]}\n".encode())
    return digest.hexdigest()


def shapes_of(pictures: Sequence[Picture], form: Form) -> np.ndarray:
    """First byte, channels, height and width of each image, int64 [n, 4]."""
    sizes = np.array(each(lambda number: form.shape(pictures[number]), pictures, "headers"), np.int64).reshape(-1, 2)
    channels = np.full(len(sizes), form.channels)
    past = np.cumsum(channels * sizes[:, 0] * sizes[:, 1])
    first = np.concatenate([[0], past[:-1]])
    return np.column_stack([first, channels, sizes])


def each(work: Callable[[int], _R], pictures: Sequence[Picture], what: str) -> list[_R]:
    """`work` on the number of each picture, by as many threads as there are processors: PIL decodes without the lock.

    Raises DataDamagedError that says which are no image.
    """
    broken: list[Picture] = []

    def attempt(number: int) -> _R | None:
        try:
            return work(number)
        except UNREADABLE:
            broken.append(pictures[number])
            return None

    with ThreadPoolExecutor(processors()) as threads:
        results = threads.map(attempt, range(len(pictures)))
        # No bar where stderr is a file: a log is to be read.
        done = list(tqdm(results, desc=f"decoding {what}", total=len(pictures), disable=None))
    if broken:
        raise unreadable(sorted(broken, key=str))
    return cast("list[_R]", done)


def unreadable(broken: Sequence[Picture]) -> DataDamagedError:
    """What to raise of pictures that cannot be decoded."""
    return DataDamagedError(several(broken, "cannot be read: it is cut off or no image", "fetch the data set again"))


def several(files: Sequence[object], fault: str, advice: str) -> str:
    """A message about all of `files` that names the first ones."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    names = f" ({', '.join(map(str, files[1:_NAMED]))}{', ...' if len(files) > _NAMED else ''})" if more else ""
    return f"{files[0]} {fault}{more}{names}; {advice}"


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
