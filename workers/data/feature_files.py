"""Feature files of MegaFace's devkit: an embedding that some program computed of an image, a matrix in a file."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workers.contract import DataDamagedError, DataMissingError
from workers.data.devkit_lists import SoughtFace

_HEADER: Final = struct.Struct("<4i")  # rows, columns, bytes of a value, OpenCV's number of its type
_FLOAT: Final = (4, 5)  # CV_32F
_WIDEST: Final = 65_536
_SHOWN: Final = 3  # files that are told of those that are missing or wrong


class FeatureFiles(NamedTuple):
    """A folder of them, as InsightFace writes it: `facescrub/PERSON/IMAGE` and `megaface/A/B/IMAGE`, and an ending."""

    folder: Path
    ending: str
    """What follows an image's name, such as `_insightface.bin`."""

    def of_probes(self, probes: Sequence[SoughtFace]) -> list[Path]:
        """The file of each probe."""
        return [self.folder / "facescrub" / f"{one.path}{self.ending}" for one in probes]

    def of_strangers(self, paths: Iterable[str]) -> list[Path]:
        """The file of each distractor."""
        return [self.folder / "megaface" / f"{one}{self.ending}" for one in paths]


def ending(folder: Path, probe: SoughtFace) -> str:
    """What the name of every feature file ends with, as that of one image shows; raises DataMissingError."""
    image = folder / "facescrub" / probe.path
    names = sorted(one.name for one in image.parent.iterdir()) if image.parent.is_dir() else []
    found = [name.removeprefix(image.name) for name in names if name.startswith(image.name) and name.endswith(".bin")]
    if len(found) == 1:
        return found[0]
    which = f"{len(found)} begin so: {', '.join(found)}; choose one by --ending" if found else "there is none"
    raise DataMissingError(f"expected one feature file {image}*.bin; {which}")


def checked(paths: Sequence[Path]) -> int:
    """The width of the features in these files, which each of them has.

    Raises DataMissingError and DataDamagedError, which name the first that are missing or wrong; a second reading of
    the files finds what this one saw.
    """
    missing, wrong, width = list[Path](), list[str](), 0
    for path in paths:
        try:
            here = len(_feature(path))
        except FileNotFoundError:
            missing.append(path)
            continue
        except (OSError, ValueError) as error:
            wrong.append(f"{path} {error}")
            continue
        width = width or here
        if here != width:
            wrong.append(f"{path} has {here:,} values, and those before it {width:,}")
    if missing:
        raise DataMissingError(f"{len(missing):,} of {len(paths):,} feature files are missing: {_first(missing)}")
    if wrong:
        raise DataDamagedError(f"{len(wrong):,} of {len(paths):,} feature files are wrong: {_first(wrong)}")
    return width


def read(paths: Sequence[Path]) -> Tensor:
    """The features in checked files, float32 [n, width]."""
    return torch.from_numpy(np.stack([_feature(path) for path in paths]))


def blocks(paths: Sequence[Path], size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The places of some files among these and their features, `size` at a time."""
    for places in torch.split(torch.arange(len(paths)), size):
        yield places, read([paths[place] for place in places.tolist()])


def _feature(path: Path) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What a file holds; raises OSError, or ValueError which goes on where the name of the file ends."""
    content = path.read_bytes()
    if len(content) < _HEADER.size:
        raise ValueError(f"has {len(content)} bytes, and its header alone has {_HEADER.size}; write it again")
    rows, columns, size, kind = _HEADER.unpack_from(content)
    if (size, kind) != _FLOAT or min(rows, columns) != 1 or not 1 <= max(rows, columns) <= _WIDEST:
        raise ValueError(
            f"is a matrix of {rows} by {columns} of type {kind} in {size} bytes; expected a vector of type 5, float32"
        )
    width = rows * columns
    if len(content) != _HEADER.size + width * size:
        raise ValueError(f"has {len(content):,} bytes, expected {_HEADER.size + width * size:,}; write it again")
    values = np.frombuffer(content, "<f4", offset=_HEADER.size).astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError("holds values that are no finite numbers")
    if not values.any():
        raise ValueError("holds nothing but zeros, which have no direction")
    return values


def _first(several: Sequence[object]) -> str:
    return "; ".join([*map(str, several[:_SHOWN]), *(["and so on"] if len(several) > _SHOWN else [])])
