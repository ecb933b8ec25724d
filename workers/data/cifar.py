"""Reading CIFAR's files: the pickles for Python, the binary files, and packs of JPEG files."""

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data.decoded import stored
from workers.data.images import Images
from workers.data.pictures import Form, check_steps, find, read_jpegs, read_labels, reading

HALVES: Final = ("train", "test")
"""The official halves."""

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
    """A half from a pack of JPEG files; raises DataMissingError, DataDamagedError."""
    path = find(root, [name])
    labels = read_labels(path)
    pictures = read_jpegs(path, len(labels))
    pixels = stored(path.stem, pictures, Form("square", 32), scratch)
    return pixels.split(range(len(labels)), contiguous(labels))


def _half(root: Path, python: str, names: Sequence[str], binary: str, *, label: bytes, before: int) -> Images:
    """The images of the files `names`; `before` is how many labels precede an image in a binary file, fine last."""
    if (root / python).is_dir():
        paths, read = [root / python / name for name in names], partial(_pickled, label=label)
    elif (root / binary).is_dir():
        paths, read = [root / binary / f"{name}.bin" for name in names], partial(_binary, before=before)
    else:
        raise DataMissingError(
            f"{python} is missing: looked in {root.absolute()} for it and for {binary}; put the folder there, or set "
            "METRICSWEEP_DATA (or --data) to the folder that holds it"
        )
    images, labels = zip(*(_checked(path, read) for path in paths), strict=True)
    pixels = torch.from_numpy(np.concatenate(images).reshape(-1, 3, 32, 32))
    return Images(pixels, contiguous(np.concatenate(labels)))


def contiguous(labels: npt.NDArray[Any]) -> torch.Tensor:
    """Labels renumbered from 0 in the order of their numbers, int64 [n]."""
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
    try:
        batch = _Arrays(io.BytesIO(content), encoding="bytes").load()
        return np.asarray(batch[b"data"]), np.asarray(batch[label], np.int64)
    except Exception as error:  # its author chooses what fails, and how
        raise pickle.UnpicklingError(str(error) or type(error).__name__) from error


class _Arrays(pickle.Unpickler):
    """Makes nothing but arrays: a pickle could otherwise run what its author likes."""

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
