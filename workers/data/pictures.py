"""Image files: decoded pictures, packs of arrays and of JPEG files, with errors that give advice."""

import gzip
import hashlib
import json
import math
import mmap
import os
import pickle
import pickletools
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image, ImageOps, features
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.catalog.recipe import below_root
from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data.file_content import digests, missing, note

GB: Final = 10**9


def disk_limit(setting: str, usual: float, range_: str, within: Callable[[float], bool]) -> float:
    """A limit in bytes from the environment variable `setting`, by default `usual` gigabytes.

    Raises ValueError if it is not a number `within` the range that `range_` describes.
    """
    text = os.environ.get(setting) or str(usual)
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not within(gigabytes):
        raise ValueError(f"{setting}: expected a number of gigabytes {range_}, found {text[:40]!r}")
    return gigabytes * GB


Resize = Literal["shorter", "square", "box", "keep"]

UNREADABLE: Final = Exception
"""Errors that PIL's readers may raise for a damaged file: of any kind."""

MOST_PIXELS: Final = 2**28
"""The maximal pixels of an image, 268 megapixels: a file of a few kilobytes can declare any number."""
Image.MAX_IMAGE_PIXELS = MOST_PIXELS

_LARGE: Final = 2**26  # pixels from which on images are decoded one at a time, so that memory is bounded
_FORMAT: Final = 2  # of what is decoded; another number decodes anew
_NAMED: Final = 5  # files that a message names
_TOGETHER: Final = 32  # images of a processor that are decoded before they are used
_ORIENTATION, _BITS_PER_SAMPLE = 0x0112, 258  # tags of EXIF and TIFF
_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip
_SIDEWAYS: Final = frozenset({5, 6, 7, 8})  # orientations that exchange width and height
_large: Final = threading.Lock()
_R = TypeVar("_R")


class RefusedError(ValueError):
    """An image cannot be used, since decoding would lose detail or take too much memory; `fault` and `advice` explain
    it.
    """

    def __init__(self, fault: str, advice: str) -> None:
        super().__init__(f"it {fault}; {advice}")
        self.fault, self.advice = fault, advice


class UnreadableError(DataDamagedError):
    """Images cannot be decoded; `damaged` has the names of those whose own content is the reason."""

    def __init__(self, message: str, damaged: frozenset[str]) -> None:
        super().__init__(message)
        self.damaged = damaged


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, or an image within a pack file."""

    path: Path
    content: bytes | memoryview | None = None  # its bytes, if `path` contains many images
    name: str = ""  # its name in messages, if not the path

    def __str__(self) -> str:
        return shown(self.name or self.path)

    def open(self) -> Image.Image:
        """Opens the image without decoding it; raises RefusedError if it has too many pixels."""
        image = Image.open(self.path if self.content is None else BytesIO(self.content))
        if image.width * image.height > MOST_PIXELS:
            image.close()
            raise _too_large(f"{image.width}x{image.height} pixels")
        return image


@dataclass(frozen=True)
class Form:
    """How an image is decoded: `shorter` resizes its shorter side to `side` pixels, `square` and `box` both sides,
    `keep` none.

    The filter is PIL's antialiased bilinear one, with sides rounded down as in torchvision's Resize; `box` averages the
    pixels that fall on each. The mode `ink` is grey with dark strokes made bright.
    """

    resize: Resize
    side: int = 0
    mode: Literal["RGB", "L", "ink"] = "RGB"
    upright: bool = False  # whether images are rotated by the orientation in their EXIF data

    @property
    def channels(self) -> int:
        return 3 if self.mode == "RGB" else 1

    def shape(self, picture: Picture) -> tuple[int, int]:
        """The height and width of the decoded image, from its header alone."""
        if self.resize in {"square", "box"}:
            return self.side, self.side
        with picture.open() as image:
            return self._shape(image)

    def pixels(self, image: Image.Image) -> np.ndarray:
        """Decodes an open image to pixels uint8 [channels, height, width]; raises RefusedError."""
        height, width = self._shape(image)
        return self._pixels(image, (width, height))

    def _shape(self, image: Image.Image) -> tuple[int, int]:
        if self.resize in {"square", "box"}:
            return self.side, self.side
        width, height = image.size
        if self.upright and _orientation(image) in _SIDEWAYS:
            width, height = height, width
        if self.resize == "keep":
            return height, width
        tall = self.side if width > height else int(self.side * height / width)
        wide = self.side if width <= height else int(self.side * width / height)
        if tall * wide > MOST_PIXELS:
            fault = f"has {width}x{height} pixels, which `resize` to {self.side} would make {wide}x{tall}"
            raise RefusedError(fault, "crop it, or set `resize: square`")
        return tall, wide

    def decode(self, picture: Picture, into: np.ndarray) -> None:
        """Decodes an image into the array `into`, uint8 [channels, height, width]."""
        with picture.open() as image:
            large = image.width * image.height > _LARGE
            with _large if large else nullcontext():
                into[...] = self._pixels(image, (into.shape[2], into.shape[1]))

    def _pixels(self, image: Image.Image, size: tuple[int, int]) -> np.ndarray:
        turn = _TURNS.get(_orientation(image)) if self.upright else None
        converted = eight_bit(image, "RGB" if self.mode == "RGB" else "L")
        if turn is not None:
            converted = converted.transpose(turn)
        if self.mode == "ink":
            converted = ImageOps.invert(converted)
        if converted.size != size:
            resampling = Image.Resampling
            converted = converted.resize(size, resampling.BOX if self.resize == "box" else resampling.BILINEAR)
        pixels = np.asarray(converted)
        return pixels.transpose(2, 0, 1) if self.channels == 3 else pixels[None]


def eight_bit(image: Image.Image, mode: Literal["RGB", "L"]) -> Image.Image:
    """Converts an image to 8 bits a channel, in colour or grey, with white behind transparent pixels.

    16-bit grey is scaled by the range of its format. Raises RefusedError if the range is not known, or if different
    pixels would become equal.
    """
    if image.mode == "F" or (image.mode == "I" and image.format not in {"PNG", "PPM"}):  # PNG, PPM: 16 bits
        values = "floating-point numbers" if image.mode == "F" else "32-bit integers"
        raise RefusedError(
            f"has the mode {image.mode} ({values}), whose range is not known", "save it with 8 or 16 bits"
        )
    if image.mode == "I" or image.mode.startswith("I;16"):
        image = _scaled(image)
    elif image.has_transparency_data:
        image = _on_white(image)
    if mode == "L" and image.mode not in {"1", "L"}:  # not every mode can be converted to grey directly
        image = image.convert("RGB")
    return image if image.mode == mode else image.convert(mode)


def _scaled(image: Image.Image) -> Image.Image:
    """16-bit grey as 8 bits, by the upper ones, as PIL reads 16-bit colour."""
    tags = getattr(image, "tag_v2", {})
    bits = int(tags.get(_BITS_PER_SAMPLE, (16,))[0])  # a TIFF may use 12 of the 16
    values = np.asarray(image)
    scaled = (values >> (bits - 8)).clip(0, 255).astype(np.uint8)
    low, high = int(values.min()), int(values.max())
    if low != high and scaled.min() == scaled.max():
        raise RefusedError(
            f"has the mode {image.mode} with values from {low:,} to {high:,}, which all become equal in 8 bits",
            "scale them to the whole range, or save them with 8 bits",
        )
    return Image.fromarray(scaled)


def _on_white(image: Image.Image) -> Image.Image:
    colours = image.convert("LA").convert("RGBA") if image.mode == "La" else image.convert("RGBA")
    *below, (_, opaque) = cast("list[tuple[int, int]]", colours.getextrema())
    if not opaque and any(low != high for low, high in below):
        raise RefusedError("is transparent everywhere", "save it without transparency")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours).convert("RGB")


def _orientation(image: Image.Image) -> int:
    """The orientation in the EXIF data, 1 by default; decodes nothing."""
    # PIL always rotates TIFF itself; for PNG without EXIF it would decode the image to search after the pixels.
    if image.format == "TIFF" or (image.format == "PNG" and "exif" not in image.info):
        return 1
    orientation = image.getexif().get(_ORIENTATION, 1)
    return orientation if isinstance(orientation, int) else 1


def _too_large(found: str) -> RefusedError:
    return RefusedError(
        f"has {found}, more than the {MOST_PIXELS:,} that are allowed", "save it with fewer pixels; the limit is fixed"
    )


def shown(path: str | Path) -> str:
    """A path as text that can be printed and stored; a byte that is not UTF-8 becomes an escape."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def key(pictures: Sequence[Picture], form: Form, scratch: Path) -> str:
    """A hash of everything that decoded images depend on: the form, and each file's name and content."""
    paths, absent = dict.fromkeys(picture.path for picture in pictures), []
    for path in paths:
        try:
            path.stat()
        except (OSError, ValueError):  # ValueError: a name that no file can have
            absent.append(path)
    if absent:
        raise DataMissingError(
            several([*map(shown, absent)], "is missing", "put the files there, or fetch the data set again")
        )
    held = digests(map(str, paths), scratch)
    decoders = [PIL.__version__, *(features.version(name) for name in ("jpg", "libjpeg_turbo"))]
    digest = hashlib.sha256(json.dumps([_FORMAT, decoders, asdict(form)]).encode())
    for picture in pictures:
        digest.update(os.fsencode(picture.name or picture.path) + f"\0{held[os.path.abspath(picture.path)]}\n".encode())
    return digest.hexdigest()


def shapes_of(pictures: Sequence[Picture], form: Form) -> np.ndarray:
    """The first byte, channels, height and width of each decoded image in the concatenated pixels, int64 [n, 4]."""
    headers = each(lambda number: form.shape(pictures[number]), pictures, "decoding headers")
    sizes = np.array([(form.channels, *shape) for shape in headers], np.int64).reshape(-1, 3)
    past = sizes.prod(axis=1).cumsum()
    return np.column_stack([past - sizes.prod(axis=1), sizes])


def each(work: Callable[[int], _R], pictures: Sequence[Picture], what: str) -> Iterator[_R]:
    """Calls `work` with the number of each image, in parallel on all processors, and yields the results in order.

    Few results are in memory at a time. Raises UnreadableError at the end that names the pictures for which it failed.
    """
    broken: list[tuple[Picture, Exception]] = []
    together = _TOGETHER * processors()
    # `disable=None`: no bar if stderr is a file.
    with ThreadPoolExecutor(processors()) as threads, tqdm(total=len(pictures), desc=what, disable=None) as bar:
        for first in range(0, len(pictures), together):
            numbers = range(first, min(first + together, len(pictures)))
            for number, done in [(number, threads.submit(work, number)) for number in numbers]:
                try:
                    yield done.result()
                except UNREADABLE as error:
                    broken.append((pictures[number], error))
            bar.update(len(numbers))
    if broken:
        raise unreadable(broken)


def unreadable(broken: Sequence[tuple[Picture, Exception]]) -> UnreadableError:
    """The error for images that cannot be decoded: the first files for each reason, and advice."""
    by_advice: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for picture, raised in sorted(broken, key=lambda pair: str(pair[0])):
        bomb = isinstance(raised, Image.DecompressionBombError | Image.DecompressionBombWarning)
        error = _too_large("too many pixels") if bomb else raised
        fault = "cannot be read: it is cut off or no image"
        advice = "fetch the data set again, or leave such images out with `on_error: skip`"
        if isinstance(error, RefusedError):
            fault, advice = error.fault, error.advice
        by_advice[advice].append((str(picture), fault))
    messages = [several([name for name, _ in found], found[0][1], advice) for advice, found in by_advice.items()]
    # An error with a number is the system's, such as a missing permission; another machine may read the file.
    damaged = frozenset(
        str(picture)
        for picture, error in broken
        if not isinstance(error, MemoryError) and getattr(error, "errno", None) is None
    )
    return UnreadableError("; and ".join(messages), damaged)


def several(files: Sequence[object], fault: str, advice: str) -> str:
    """A message with a `fault` of several files that names the first files."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    names = f" ({', '.join(map(str, files[1:_NAMED]))}{', ...' if len(files) > _NAMED else ''})" if more else ""
    return f"{files[0]} {fault}{more}{names}; {advice}"


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Array = npt.NDArray[np.uint8]

MOST_EXPANDED: Final = 2**28
"""The bytes to which a small compressed file may expand; a file of megabytes can contain gigabytes of zeros."""

_MOST_RATIO: Final = 100  # how many times larger than its compressed form a larger array may be
_IDX_BYTES: Final = 0x08  # the type code of unsigned bytes
_MAT_COMPRESSED: Final = 15  # the type code of a compressed element
_MOST_STEPS: Final = 1_000_000  # of a pickle; the training half of CIFAR-100 takes about 200,000


@contextmanager
def reading(path: Path, advice: str = "fetch it again", absent: str = "; fetch the data set again") -> Iterator[None]:
    """Record that a file is read, and name it in any error, since damaged files can make readers raise anything.

    Raises DataMissingError, whose message ends with `absent`, if the file is missing, otherwise DataDamagedError.
    """
    note(path)
    try:
        yield
    except (DataMissingError, DataDamagedError):
        raise
    except FileNotFoundError as error:
        raise DataMissingError(f"{shown(path)} is missing{absent}") from error
    except Exception as error:
        why = str(error) or type(error).__name__
        raise DataDamagedError(f"{shown(path)} cannot be read; {advice} ({why})") from error


def find(root: Path, names: Sequence[str]) -> Path:
    """The path of the first of the files `names` that is in `root`; raises DataMissingError."""
    for name in names:
        if (root / name).is_file():
            return root / name
    raise missing(f"{names[0]} is missing: looked in {root.absolute()} for {' or '.join(names)}", "the file")


def read_npz(path: Path, keys: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Reads the arrays `keys` of a NumPy pack, without pickles. Raises DataMissingError, DataDamagedError."""
    with reading(path), np.load(path, allow_pickle=False) as pack:
        if absent := [key for key in keys if key not in pack.files]:
            raise DataDamagedError(f"{path} has no array {absent[0]!r}; it has {', '.join(pack.files)}")
        for member in pack.zip.infolist():
            size, packed = member.file_size, member.compress_size
            if member.filename.removesuffix(".npy") in keys and size > max(MOST_EXPANDED, _MOST_RATIO * packed):
                raise ValueError(
                    f"{member.filename} of {packed:,} bytes would expand to {size:,}, far more than images do; "
                    "save it uncompressed if that is right"
                )
        arrays = [pack[key] for key in keys]
        if scalars := [key for key, array in zip(keys, arrays, strict=True) if not getattr(array, "ndim", 0)]:
            raise ValueError(f"{scalars[0]} is a scalar, expected an array")
        return arrays


def read_labels(path: Path) -> npt.NDArray[np.integer[Any]]:
    """Reads the labels [n] of a NumPy pack; raises DataDamagedError."""
    (labels,) = read_npz(path, ["label"])
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise DataDamagedError(f"{path}: expected integers as labels [n]")
    return cast("npt.NDArray[np.integer[Any]]", labels)


def read_jpegs(path: Path, count: int) -> list[Picture]:
    """The `count` files of a pack: `jpeg` has one after another, from `offset` [n + 1] to the next.

    Raises DataDamagedError.
    """
    content, offset = read_npz(path, ("jpeg", "offset"))
    whole = np.issubdtype(offset.dtype, np.integer) and offset.shape == (count + 1,)
    rising = whole and bool((np.diff(offset.astype(np.int64)) > 0).all())
    if content.dtype != np.uint8 or content.ndim != 1 or not rising or offset[0] != 0 or offset[-1] != len(content):
        raise DataDamagedError(f"{path}: expected `offset` [n + 1] to increase from 0 to the length of `jpeg`")
    bounds = offset.tolist()
    return [
        Picture(path, content.data[first:past], f"image {number} of {path}")
        for number, (first, past) in enumerate(pairwise(bounds))
    ]


def read_text(path: Path, absent: str = "; fetch the data set again") -> str:
    """Reads a text file; `absent` ends the message if it does not exist."""
    with reading(path, absent=absent):
        return path.read_text("utf-8")


def mapped(path: Path) -> memoryview:
    """The bytes of a file, memory-mapped. Raises DataMissingError, DataDamagedError."""
    with reading(path), path.open("rb") as file:  # an empty file cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def check_steps(content: bytes, most_tuples: int) -> None:
    """Raise UnpicklingError if loading a pickle would take more memory or stack than its size explains."""
    tuples = 0
    for number, (step, value, _) in enumerate(pickletools.genops(content)):
        # It would take memory for all numbers up to this one.
        if step.name.endswith("PUT") and isinstance(value, int) and value > min(len(content), _MOST_STEPS):
            raise pickle.UnpicklingError(f"it stores object {value:,}, too many for {len(content):,} bytes")
        tuples += step.name.startswith("TUPLE")
        if tuples > most_tuples:  # nested tuples overflow the stack when they are hashed as a key
            raise pickle.UnpicklingError(f"it makes more than {most_tuples:,} tuples")
        if number >= _MOST_STEPS:
            raise pickle.UnpicklingError(f"it takes more than {_MOST_STEPS:,} steps")


def read_idx(path: Path) -> Array:
    """The array of an IDX file of unsigned bytes, gzipped or not. Raises DataDamagedError."""
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[2] != _IDX_BYTES:
            raise ValueError("it is not an IDX file of unsigned bytes")
        shape = np.frombuffer(file.read(4 * head[3]), ">u4", count=head[3]).tolist()
        if (size := math.prod(shape)) > MOST_EXPANDED:
            raise ValueError(f"it declares {size:,} bytes, more than any data set in this format has")
        content = file.read(size + 1)  # not more, however large the file expands
        if len(content) != size:
            raise ValueError(f"it declares {size:,} bytes, but has {'more' if len(content) > size else len(content)}")
        return np.frombuffer(content, np.uint8).reshape(shape)


def names(path: Path) -> list[str]:
    """The names of the arrays in a NumPy pack; raises DataDamagedError."""
    with reading(path), np.load(path, allow_pickle=False) as pack:
        return list(pack.files)


def inside(name: str) -> str:
    """Returns `name` if it is a path below the data root; otherwise raises DataOptionError."""
    if not below_root(name):
        raise DataOptionError(f"expected a path below the data root, found {name!r}")
    return name


def check_expansion(content: bytes) -> None:
    """Raise ValueError if a MATLAB file, version 5, would expand to more than MOST_EXPANDED bytes."""
    order = "big" if content[126:128] == b"MI" else "little"
    at, expanded = 128, 0
    while at + 8 <= len(content):
        kind, size = (int.from_bytes(content[at + part : at + part + 4], order) for part in (0, 4))  # type: ignore[arg-type]
        if kind == _MAT_COMPRESSED:
            expanded += len(zlib.decompressobj().decompress(content[at + 8 : at + 8 + size], MOST_EXPANDED + 1))
        if expanded > MOST_EXPANDED:
            raise ValueError(f"its {len(content):,} bytes expand to more than {MOST_EXPANDED:,}")
        at += 8 + size
