"""MegaFace's devkit: its lists, and features in its binary format."""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data.file_content import missing
from workers.data.pictures import inside, read_text

Noise = Literal["dropped", "kept"]

_FOLDERS: Final = ("megaface", "MegaFace", "megaface_testpack_v1.0")
_LISTS: Final = ("devkit/templatelists", "templatelists")
_PROBES: Final = "facescrub_features_list.json"
_OFFICIAL: Final = (80, 3530)  # people, and probes of them


class Probe(NamedTuple):
    """A face of MegaFace that is searched for among distractors."""

    path: str
    label: int
    name: str


class DevkitLists(NamedTuple):
    """The folders of MegaFace's devkit lists in a data root."""

    folder: Path  # of the data set; it also has the lists of wrong images
    lists: Path

    @classmethod
    def of(cls, root: Path) -> "DevkitLists":
        """Finds the devkit lists in a data root; raises DataMissingError."""
        for folder in (*(root / name for name in _FOLDERS), root):
            for lists in (folder / name for name in _LISTS):
                if (lists / _PROBES).is_file():
                    return cls(folder, lists)
        raise missing(f"{_FOLDERS[0]}/{_LISTS[0]}/{_PROBES} is missing: looked in {root.absolute()}", "the data set")

    def probes(self, noise: Noise, *, official: bool) -> list[Probe]:
        """Reads the list of probes, person by person; raises DataMissingError, DataDamagedError."""
        path = self.lists / _PROBES
        held = _read(path)
        paths = _paths(path, held)
        people = held.get("id", [Path(image).parent.name for image in paths])
        named = [person for person in people if person and isinstance(person, str)] if isinstance(people, list) else []
        if not isinstance(people, list) or not len(named) == len(paths) == len(people):
            found = f"{sum(map(bool, people)):,} names" if isinstance(people, list) else "no list"
            expected = f"expected in `id` the name of the person on each of the {len(paths):,} probes"
            raise DataDamagedError(f"{path}: {expected}; found {found}")
        numbers = {person: number for number, person in enumerate(sorted(set(named)))}
        if official and (len(numbers), len(paths)) != _OFFICIAL:
            wanted = f"expected {_OFFICIAL[1]:,} probes of {_OFFICIAL[0]} people, or set `official: false`"
            raise DataDamagedError(f"{path} lists {len(paths):,} probes of {len(numbers):,} people; {wanted}")
        wrong = self.folder / "facescrub_noises.txt"
        noisy = _noise(wrong) if noise == "dropped" else frozenset()
        pairs = zip(paths, named, strict=True)
        probes = [Probe(image, numbers[name], name) for image, name in pairs if Path(image).name not in noisy]
        if len({probe.label for probe in probes}) != len(numbers):
            raise DataDamagedError(f"{wrong} drops every probe of some people; fetch it again")
        return sorted(probes, key=lambda probe: probe.label)

    def strangers(self, sizes: Sequence[int], draw: int, noise: Noise) -> dict[int, list[str]]:
        """The paths of the distractors for each size; raises DataMissingError, DataDamagedError, DataOptionError."""
        if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1 or draw < 1:
            found = f"found {[*sizes]} and {draw}"
            raise DataOptionError(f"dataset.sizes, dataset.draw: expected positive numbers, `sizes` rising; {found}")
        noisy = _noise(self.folder / "megaface_noises.txt") if noise == "dropped" else frozenset()
        strangers = {}
        for size in sizes:
            path = self.lists / f"megaface_features_list.json_{size}_{draw}"
            paths = _paths(path, _read(path))
            if len(paths) != size or len(set(paths)) != size:
                raise DataDamagedError(f"{path}: expected {size:,} different images, found {len(set(paths)):,}")
            strangers[size] = [image for image in paths if _tail(image) not in noisy]
        return strangers


def every(strangers: Mapping[int, Sequence[str]]) -> list[str]:
    """The paths of all distractors, each once."""
    return list(dict.fromkeys(path for paths in strangers.values() for path in paths))


def _read(path: Path) -> dict[str, object]:
    text = read_text(path, ": it lists the images of MegaFace's devkit; put it there")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataDamagedError(f"{path} cannot be read; fetch it again ({error})") from error
    if not isinstance(held, dict):
        raise DataDamagedError(f"{path}: expected an object with a list of images in `path`")
    return held


def _paths(path: Path, held: Mapping[str, object]) -> list[str]:
    """The images of a list, relative to their common folder."""
    paths = held.get("path")
    if not isinstance(paths, list) or not paths or not all(isinstance(image, str) for image in paths):
        raise DataDamagedError(f"{path}: expected a list of images in `path`")
    try:
        return [inside(image) for image in paths]
    except ValueError as error:
        raise DataDamagedError(f"{path}: {error}") from error


def _noise(path: Path) -> frozenset[str]:
    """The images of a list of wrong images: the second field of each line, or the only one; comments are skipped."""
    absent = ": it lists the images that InsightFace found to be wrong; put it there, or set `noise: kept`"
    lines = read_text(path, absent).splitlines()
    fields = [line.strip().split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return frozenset(_tail(row[1] if len(row) > 1 else row[0]) for row in fields)


def _tail(path: str) -> str:
    """The end of a path, by which InsightFace's lists identify an image."""
    return "/".join(path.split("/")[-3:])


_HEADER: Final = struct.Struct("<4i")  # rows, columns, bytes of a value, OpenCV's number of its type
_FLOAT: Final = (4, 5)  # CV_32F
_WIDEST: Final = 65_536
_SHOWN: Final = 3  # missing or wrong files that a message names


class FeatureFiles(NamedTuple):
    """A folder of feature files as InsightFace writes it: `facescrub/PERSON/IMAGE` and `megaface/A/B/IMAGE`.

    Each file name continues with the same ending.
    """

    folder: Path
    ending: str  # what follows an image's name, such as `_insightface.bin`

    def of_probes(self, probes: Sequence[Probe]) -> list[Path]:
        return [self.folder / "facescrub" / f"{probe.path}{self.ending}" for probe in probes]

    def of_strangers(self, paths: Iterable[str]) -> list[Path]:
        return [self.folder / "megaface" / f"{path}{self.ending}" for path in paths]


def ending(folder: Path, probe: Probe) -> str:
    """The common ending of all feature files, found from one image; raises DataMissingError."""
    image = folder / "facescrub" / probe.path
    names = sorted(file.name for file in image.parent.iterdir()) if image.parent.is_dir() else []
    found = [name.removeprefix(image.name) for name in names if name.startswith(image.name) and name.endswith(".bin")]
    if len(found) == 1:
        return found[0]
    which = f"found {len(found)}: {', '.join(found)}; choose one with --ending" if found else "found none"
    raise DataMissingError(f"expected one feature file {image}*.bin; {which}")


def checked(paths: Sequence[Path]) -> int:
    """The common width of the features in these files.

    Raises DataMissingError and DataDamagedError, which name the first files that are missing or wrong.
    """
    absent, wrong, width = list[Path](), list[str](), 0
    for path in paths:
        try:
            here = len(_feature(path))
        except FileNotFoundError:
            absent.append(path)
            continue
        except (OSError, ValueError) as error:
            wrong.append(f"{path} {error}")
            continue
        width = width or here
        if here != width:
            wrong.append(f"{path} has {here:,} values, but the files before it have {width:,}")
    if absent:
        raise DataMissingError(f"{len(absent):,} of {len(paths):,} feature files are missing: {_first(absent)}")
    if wrong:
        raise DataDamagedError(f"{len(wrong):,} of {len(paths):,} feature files are wrong: {_first(wrong)}")
    return width


def read(paths: Sequence[Path]) -> Tensor:
    """The features in checked files, float32 [n, width]."""
    return torch.from_numpy(np.stack([_feature(path) for path in paths]))


def blocks(paths: Sequence[Path], size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Reads feature files `size` at a time: their indices among `paths`, and their features."""
    for places in torch.split(torch.arange(len(paths)), size):
        yield places, read([paths[place] for place in places.tolist()])


def _feature(path: Path) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """The content of a file; raises OSError, or a ValueError whose message follows the name of the file."""
    content = path.read_bytes()
    if len(content) < _HEADER.size:
        raise ValueError(f"has {len(content)} bytes, but its header needs {_HEADER.size}; write it again")
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
        raise ValueError("contains values that are not finite")
    if not values.any():
        raise ValueError("contains only zeros, which have no direction")
    return values


def _first(several: Sequence[object]) -> str:
    return "; ".join([*map(str, several[:_SHOWN]), *(["..."] if len(several) > _SHOWN else [])])
