"""Reading the files of data sets: NumPy packs, MNIST's IDX files, texts and maps, with errors that say what to do."""

import gzip
import mmap
import zipfile
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from workers.contract import DataDamagedError, DataMissingError
from workers.data.file_content import note
from workers.data.picture import Picture

Array = npt.NDArray[np.uint8]

_IDX_BYTES = 0x08  # the type code of unsigned bytes


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
    """The arrays `keys` of a NumPy pack; nothing is unpickled. Raises DataDamagedError."""
    note(path)
    try:
        with np.load(path, allow_pickle=False) as pack:
            if missing := [key for key in keys if key not in pack.files]:
                raise DataDamagedError(f"{path} has no array {missing[0]!r}; it holds {', '.join(pack.files)}")
            return [pack[key] for key in keys]
    except DataDamagedError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


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
    if content.dtype != np.uint8 or not rising or offset[0] != 0 or offset[-1] != len(content):
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
    note(path)
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise DataMissingError(f"{path} is missing{missing}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


def mapped(path: Path) -> memoryview:
    """The bytes of a file, read as they are looked at. Raises DataMissingError, DataDamagedError."""
    note(path)
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError as error:
        raise DataMissingError(f"{path} is missing; fetch the data set again") from error
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


def read_idx(path: Path) -> Array:
    """The array of an IDX file of unsigned bytes, gzipped or not. Raises DataDamagedError."""
    note(path)
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(content) < 4 or content[2] != _IDX_BYTES:
            raise ValueError("it is no IDX file of bytes")
        dimensions = content[3]
        shape = np.frombuffer(content, ">u4", count=dimensions, offset=4).tolist()
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


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
    if image.dtype != np.uint8 or image.shape != (count, side, side) or not np.isin(label, np.arange(10)).all():
        raise DataDamagedError(f"{path}: expected {count:,} images of {side}x{side} bytes with labels 0 to 9")
    return image, label


def names(path: Path) -> list[str]:
    """The names of the arrays in a NumPy pack; raises DataDamagedError."""
    note(path)
    try:
        with np.load(path, allow_pickle=False) as pack:
            return list(pack.files)
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


def inside(name: str) -> str:
    """`name`, where it is a path below the data root; raises ValueError."""
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"expected a path below the data root, found {name!r}")
    return name
