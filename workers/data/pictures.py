"""Files of images: decoded pictures, packs of arrays and JPEG files, with errors that say what to do."""

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
from typing import Any, Final, Literal, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image, ImageOps, features
from tqdm import tqdm  # type: ignore[import-untyped]

from workers.catalog.recipe import below_root
from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data.file_content import digests, note

GB: Final = 10**9


def disk_limit(setting: str, usual: float, range_: str, within: Callable[[float], bool]) -> float:
    """The bytes that `setting` allows, `usual` gigabytes where it says nothing.

    Raises ValueError where it is no number that is `within` its range, which `range_` says in words.
    """
    said = os.environ.get(setting) or str(usual)
    try:
        found = float(said)
    except ValueError:
        found = math.nan
    if not within(found):
        raise ValueError(f"{setting}: expected a number of gigabytes {range_}, found {said[:40]!r}")
    return found * GB


Resize = Literal["shorter", "square", "box", "keep"]

UNREADABLE: Final = Exception
"""What PIL raises of a file that is no image or is cut off: a damaged file can make its readers raise anything."""

MOST_PIXELS: Final = 2**28
"""The most pixels of an image, 268 megapixels: a file of a few kilobytes can declare any number of them."""
Image.MAX_IMAGE_PIXELS = MOST_PIXELS

_LARGE: Final = 2**26  # pixels from which on images are decoded one at a time, so that memory is bounded
_FORMAT: Final = 2  # of what is decoded; another number decodes anew
_NAMED: Final = 5  # files that a message names
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
    """An image that would lose what it shows, or takes too much memory; `fault` and `advice` say why and what to do."""

    def __init__(self, fault: str, advice: str) -> None:
        super().__init__(f"it {fault}; {advice}")
        self.fault, self.advice = fault, advice


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it lies on disk."""

    path: Path
    content: bytes | memoryview | None = None
    """Its bytes where `path` holds many images."""
    name: str = ""
    """What a message calls it, where it is not the path."""

    def __str__(self) -> str:
        return shown(self.name or self.path)

    def open(self) -> Image.Image:
        """The image, not decoded yet; raises RefusedError where it has too many pixels."""
        image = Image.open(self.path if self.content is None else BytesIO(self.content))
        if image.width * image.height > MOST_PIXELS:
            image.close()
            raise _too_large(f"{image.width}x{image.height} pixels")
        return image


@dataclass(frozen=True)
class Form:
    """How an image is decoded: `shorter` brings its shorter side to `side` pixels, `square` both; `keep` neither.

    Resized by PIL's antialiased bilinear filter, sides rounded down, as torchvision's Resize; with `box` both sides, by
    the mean of the pixels that fall on each. The mode `ink` is grey with dark strokes made bright.
    """

    resize: Resize
    side: int = 0
    mode: Literal["RGB", "L", "ink"] = "RGB"
    upright: bool = False
    """Whether an image is turned as the orientation in its EXIF data says."""

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
            if self.upright and _orientation(image) in _SIDEWAYS:
                width, height = height, width
        if self.resize == "keep":
            return height, width
        if width <= height:
            found = int(self.side * height / width), self.side
        else:
            found = self.side, int(self.side * width / height)
        if found[0] * found[1] > MOST_PIXELS:
            raise RefusedError(
                f"has {width}x{height} pixels, which a shorter side of {self.side} makes {found[1]}x{found[0]}",
                "crop it, or set `resize: square`",
            )
        return found

    def decode(self, picture: Picture, into: np.ndarray) -> None:
        """Write the pixels to `into`, uint8 [channels, height, width]."""
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
    """The image with 8 bits a channel, in colour or grey, as a viewer shows it: what is transparent lies on white.

    16-bit grey is scaled by the range of its format. Raises RefusedError where the range is not known, or where
    different pixels would become equal.
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
    if mode == "L" and image.mode not in {"1", "L"}:  # not every mode can be turned into grey at once
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
            f"has the mode {image.mode} with values from {low:,} to {high:,}, all the same in 8 of its {bits} bits",
            "scale them to the whole range, or save them with 8 bits",
        )
    return Image.fromarray(scaled)


def _on_white(image: Image.Image) -> Image.Image:
    colours = image.convert("LA").convert("RGBA") if image.mode == "La" else image.convert("RGBA")
    *below, (_, opaque) = cast("list[tuple[int, int]]", colours.getextrema())
    if not opaque and any(low != high for low, high in below):
        raise RefusedError("is transparent everywhere, which hides what it shows", "save it without transparency")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), colours).convert("RGB")


def _orientation(image: Image.Image) -> int:
    """The orientation that the EXIF data say, 1 where they say nothing; nothing is decoded for it."""
    if image.format == "TIFF":  # which PIL always turns itself
        return 1
    if image.format == "PNG" and "exif" not in image.info:  # PIL would decode the image to look behind its pixels
        return 1
    found = image.getexif().get(_ORIENTATION, 1)
    return found if isinstance(found, int) else 1


def _too_large(found: str) -> RefusedError:
    return RefusedError(
        f"has {found}, more than the {MOST_PIXELS:,} that an image may have", "save it smaller; the limit is fixed"
    )


def shown(path: str | Path) -> str:
    r"""A path as text that can be printed and stored: a byte that is not UTF-8 stands as `\xe9`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def key(pictures: Sequence[Picture], form: Form, scratch: Path) -> str:
    """What decoded pictures depend on: a hash of the form and of each file's name and content."""
    paths, missing = dict.fromkeys(picture.path for picture in pictures), []
    for path in paths:
        try:
            path.stat()
        except (OSError, ValueError):  # a list may hold a name that no file can have
            missing.append(path)
    if missing:
        raise DataMissingError(
            several([*map(shown, missing)], "is missing", "put the files there, or fetch the data set again")
        )
    held = digests(map(str, paths), scratch)
    decoders = [PIL.__version__, *(features.version(name) for name in ("jpg", "libjpeg_turbo"))]
    digest = hashlib.sha256(json.dumps([_FORMAT, decoders, asdict(form)]).encode())
    for picture in pictures:
        digest.update(os.fsencode(picture.name or picture.path) + f"\0{held[os.path.abspath(picture.path)]}\n".encode())
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
    broken: list[Broken] = []

    def attempt(number: int) -> _R | None:
        try:
            return work(number)
        except UNREADABLE as error:
            broken.append(Broken(pictures[number], error))
            return None

    with ThreadPoolExecutor(processors()) as threads:
        results = threads.map(attempt, range(len(pictures)))
        # No bar where stderr is a file: a log is to be read.
        done = list(tqdm(results, desc=f"decoding {what}", total=len(pictures), disable=None))
    if broken:
        raise unreadable(broken)
    return cast("list[_R]", done)


class Broken(NamedTuple):
    """A picture that cannot be decoded."""

    picture: Picture
    error: Exception


def unreadable(broken: Sequence[Broken]) -> DataDamagedError:
    """What to raise of pictures that cannot be decoded: for each reason the first ones, and what to do."""
    by_advice: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in sorted(broken, key=lambda one: str(one.picture)):
        bomb = isinstance(one.error, Image.DecompressionBombError | Image.DecompressionBombWarning)
        error = _too_large("too many pixels") if bomb else one.error
        fault, advice = "cannot be read: it is cut off or no image", "fetch the data set again"
        if isinstance(error, RefusedError):
            fault, advice = error.fault, error.advice
        by_advice[advice].append((str(one.picture), fault))
    said = [several([name for name, _ in found], found[0][1], advice) for advice, found in by_advice.items()]
    return DataDamagedError("; and ".join(said))


def several(files: Sequence[object], fault: str, advice: str) -> str:
    """A message about all of `files` that names the first ones."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    names = f" ({', '.join(map(str, files[1:_NAMED]))}{', ...' if len(files) > _NAMED else ''})" if more else ""
    return f"{files[0]} {fault}{more}{names}; {advice}"


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Array = npt.NDArray[np.uint8]

MOST_EXPANDED: Final = 2**28
"""The bytes to which a small compressed file may expand; a file of megabytes can hold gigabytes of zeros."""

_MOST_RATIO: Final = 100  # how many times larger than its compressed form a larger array may be
_IDX_BYTES: Final = 0x08  # the type code of unsigned bytes
_MAT_COMPRESSED: Final = 15  # the type code of a compressed element
_MOST_STEPS: Final = 1_000_000  # of a pickle; the training half of CIFAR-100 takes about 200,000


@contextmanager
def reading(path: Path, advice: str = "fetch it again") -> Iterator[None]:
    """Note that a file is read, and name it in whatever is raised: a damaged file can make its reader raise anything.

    Raises DataMissingError where the file is not there, else DataDamagedError.
    """
    note(path)
    try:
        yield
    except (DataMissingError, DataDamagedError):
        raise
    except FileNotFoundError as error:
        raise DataMissingError(f"{shown(path)} is missing; fetch the data set again") from error
    except Exception as error:
        why = str(error) or type(error).__name__
        raise DataDamagedError(f"{shown(path)} cannot be read; {advice} ({why})") from error


def find(root: Path, names: Sequence[str]) -> Path:
    """The first of the files `names` that is in `root`; raises DataMissingError."""
    for name in names:
        if (root / name).is_file():
            return root / name
    raise DataMissingError(
        f"{names[0]} is missing: looked in {root.absolute()} for {' or '.join(names)}; "
        "put the file there, or set METRICSWEEP_DATA (or --data) to the folder that holds it"
    )


def read_npz(path: Path, keys: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """The arrays `keys` of a NumPy pack; nothing is unpickled. Raises DataMissingError, DataDamagedError."""
    with reading(path), np.load(path, allow_pickle=False) as pack:
        if missing := [key for key in keys if key not in pack.files]:
            raise DataDamagedError(f"{path} has no array {missing[0]!r}; it holds {', '.join(pack.files)}")
        for member in pack.zip.infolist():
            size, packed = member.file_size, member.compress_size
            if member.filename.removesuffix(".npy") in keys and size > max(MOST_EXPANDED, _MOST_RATIO * packed):
                raise ValueError(
                    f"{member.filename} of {packed:,} bytes would expand to {size:,}, which no images do; "
                    "save it uncompressed if that is right"
                )
        arrays = [pack[key] for key in keys]
        if scalars := [key for key, one in zip(keys, arrays, strict=True) if not getattr(one, "ndim", 0)]:
            raise ValueError(f"{scalars[0]} is no array")
        return arrays


def read_labels(path: Path) -> npt.NDArray[np.integer[Any]]:
    """The labels [n] of a NumPy pack; raises DataDamagedError."""
    (labels,) = read_npz(path, ["label"])
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise DataDamagedError(f"{path}: expected whole numbers as labels [n]")
    return cast("npt.NDArray[np.integer[Any]]", labels)


def read_jpegs(path: Path, count: int) -> list[Picture]:
    """The `count` files of a pack whose `jpeg` holds one after another, from `offset` [n + 1] to the next.

    Raises DataDamagedError.
    """
    content, offset = read_npz(path, ("jpeg", "offset"))
    whole = np.issubdtype(offset.dtype, np.integer) and offset.shape == (count + 1,)
    rising = whole and bool((np.diff(offset.astype(np.int64)) > 0).all())
    if content.dtype != np.uint8 or content.ndim != 1 or not rising or offset[0] != 0 or offset[-1] != len(content):
        raise DataDamagedError(f"{path}: expected `offset` [n + 1] to rise from 0 to the length of `jpeg`")
    bounds = offset.tolist()
    return [
        Picture(path, content.data[first:past], f"image {number} of {path}")
        for number, (first, past) in enumerate(pairwise(bounds))
    ]


def read_text(path: Path, missing: str = "; fetch the data set again") -> str:
    """The text of a file; `missing` ends what is said where it is not there.

    Raises DataMissingError, DataDamagedError.
    """
    with reading(path):
        try:
            return path.read_text("utf-8")
        except FileNotFoundError as error:
            raise DataMissingError(f"{shown(path)} is missing{missing}") from error


def mapped(path: Path) -> memoryview:
    """The bytes of a file, read as they are looked at. Raises DataMissingError, DataDamagedError."""
    with reading(path), path.open("rb") as file:  # an empty file cannot be mapped
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def check_steps(content: bytes, most_tuples: int) -> None:
    """Raise UnpicklingError where loading a pickle would take memory or stack that its size does not account for."""
    tuples = 0
    for number, (step, value, _) in enumerate(pickletools.genops(content)):
        # It would take memory for all numbers up to the one that is kept.
        if step.name.endswith("PUT") and isinstance(value, int) and value > min(len(content), _MOST_STEPS):
            raise pickle.UnpicklingError(f"it keeps value {value:,} of {len(content):,} bytes")
        tuples += step.name.startswith("TUPLE")
        if tuples > most_tuples:  # one within another, they overflow the stack when they are hashed as a key
            raise pickle.UnpicklingError(f"it makes more than {most_tuples:,} tuples")
        if number >= _MOST_STEPS:
            raise pickle.UnpicklingError(f"it takes more than {_MOST_STEPS:,} steps")


def read_idx(path: Path) -> Array:
    """The array of an IDX file of unsigned bytes, gzipped or not. Raises DataDamagedError."""
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[2] != _IDX_BYTES:
            raise ValueError("it is no IDX file of bytes")
        shape = np.frombuffer(file.read(4 * head[3]), ">u4", count=head[3]).tolist()
        if (size := math.prod(shape)) > MOST_EXPANDED:
            raise ValueError(f"it declares {size:,} bytes, and the data sets in this format have fewer")
        content = file.read(size + 1)  # no more, whatever the file expands to
        if len(content) != size:
            raise ValueError(f"it declares {size:,} bytes and has {'more' if len(content) > size else len(content)}")
        return np.frombuffer(content, np.uint8).reshape(shape)


def read_idx_pair(path: Path, side: int = 28) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """The images [n, side, side] and labels [n] of ten classes: `path` holds the images, its twin the labels."""
    labels = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
    return checked(path, [read_idx(path), read_idx(find(labels.parent, [labels.name]))], side)


def checked(
    path: Path, arrays: Sequence[npt.NDArray[np.generic]], side: int = 28
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """The images and labels, where these are images of bytes and of ten classes; raises DataDamagedError."""
    image, label = arrays
    count = len(label)
    if (
        label.ndim != 1
        or image.dtype != np.uint8
        or image.shape != (count, side, side)
        or not np.isin(label, np.arange(10)).all()
    ):
        raise DataDamagedError(f"{path}: expected {count:,} images of {side}x{side} bytes with labels 0 to 9")
    return image, label


def names(path: Path) -> list[str]:
    """The names of the arrays in a NumPy pack; raises DataDamagedError."""
    with reading(path), np.load(path, allow_pickle=False) as pack:
        return list(pack.files)


def inside(name: str) -> str:
    """`name`, where it is a path below the data root; raises DataOptionError."""
    if not below_root(name):
        raise DataOptionError(f"expected a path below the data root, found {name!r}")
    return name


def check_expansion(content: bytes) -> None:
    """Raise ValueError where a MATLAB file, version 5, would expand to more than MOST_EXPANDED bytes."""
    order = "big" if content[126:128] == b"MI" else "little"
    at, expanded = 128, 0
    while at + 8 <= len(content):
        kind, size = (int.from_bytes(content[at + part : at + part + 4], order) for part in (0, 4))  # type: ignore[arg-type]
        if kind == _MAT_COMPRESSED:
            expanded += len(zlib.decompressobj().decompress(content[at + 8 : at + 8 + size], MOST_EXPANDED + 1))
        if expanded > MOST_EXPANDED:
            raise ValueError(f"its {len(content):,} bytes expand to more than {MOST_EXPANDED:,}")
        at += 8 + size
