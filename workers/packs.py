"""Reading the files of data sets: NumPy packs and MNIST's IDX files, with errors that say what to do."""

import gzip
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from workers.images import DataDamagedError, DataMissingError

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
    try:
        with np.load(path, allow_pickle=False) as pack:
            if missing := [key for key in keys if key not in pack.files]:
                raise DataDamagedError(f"{path} has no array {missing[0]!r}; it holds {', '.join(pack.files)}")
            return [pack[key] for key in keys]
    except DataDamagedError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error


def read_idx(path: Path) -> Array:
    """The array of an IDX file of unsigned bytes, gzipped or not. Raises DataDamagedError."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if len(content) < 4 or content[2] != _IDX_BYTES:
            raise ValueError("it is no IDX file of bytes")
        dimensions = content[3]
        shape = np.frombuffer(content, ">u4", count=dimensions, offset=4).tolist()
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error
