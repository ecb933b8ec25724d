"""Reading the files of data sets: NumPy packs, MNIST's IDX files, texts and maps, with errors that say what to do."""

import gzip
import math
import mmap
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from workers.catalog.needs import below_root
from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data.file_content import note
from workers.data.picture import Picture, shown

Array = npt.NDArray[np.uint8]

MOST_EXPANDED: Final = 2**28
"""The bytes to which a small compressed file may expand; a file of megabytes can hold gigabytes of zeros."""

_MOST_RATIO: Final = 100  # how many times larger than its compressed form a larger array may be
_IDX_BYTES: Final = 0x08  # the type code of unsigned bytes
_MAT_COMPRESSED: Final = 15  # the type code of a compressed element


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
