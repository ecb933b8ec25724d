"""MegaFace, challenge 1: faces of people to be found among up to a million strangers."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple

import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data import face_pairs, listing
from workers.data.listing import Listed, Source
from workers.data.packs import inside, read_text
from workers.data.picture import Form, Picture

_FOLDERS: Final = ("megaface", "MegaFace", "megaface_testpack_v1.0")
_LISTS: Final = ("devkit/templatelists", "templatelists")
_PROBES: Final = "facescrub_features_list.json"
_OFFICIAL: Final = (80, 3530)  # people, and probes of them


class Megaface:
    """3,530 probes of 80 people (FaceScrub) and the strangers of the devkit's lists; nothing of it trains.

    Read from `megaface/` with `facescrub_images/`, `megaface_images/` and in `devkit/templatelists/` its lists:
    `facescrub_features_list.json` and, for each of `sizes`, such as `megaface_features_list.json_1000000_1`, whose last
    number is `draw`. With `noise: dropped` the images that InsightFace found to be wrong are left out, as its
    `facescrub_noises.txt` and `megaface_noises.txt` list them. `official: false` takes other numbers of probes.
    """

    label = "MegaFace"
    paper = "Kemelmacher-Shlizerman et al. 2016"
    version = 1
    classes: ClassVar[Mapping[str, int]] = {"train": 0}
    images: ClassVar[Mapping[str, int]] = {"train": 0}
    channels = 3
    side = 112
    manifest = None

    def __init__(  # noqa: PLR0913 - each is one choice of which images are taken
        self,
        root: Path,
        scratch: Path,
        *,
        sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000),
        draw: int = 1,
        noise: Literal["dropped", "kept"] = "dropped",
        side: int = 112,
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        self.train = face_pairs.none(side)
        folder, lists = _found(root)
        dropped = noise == "dropped"
        probes = _probes(folder, lists / _PROBES, dropped=dropped, official=official)
        strangers = _strangers(folder, lists, sizes, draw, dropped=dropped)
        source = Source("megaface", Form("square", side), scratch, type(self), official)
        people = 1 + max(probe.label for probe in probes)
        others = {path: len(probes) + place for place, path in enumerate(_every(strangers))}
        listed = [Listed(Picture(folder / "facescrub_images" / one.path), one.label, True, one.name) for one in probes]
        listed += [Listed(Picture(folder / "megaface_images" / path), people, False, "strangers") for path in others]
        images, read = listing.load_half(source, "test", listed)
        among = {
            size: torch.tensor([others[path] for path in paths], dtype=torch.int64) for size, paths in strangers.items()
        }
        self.test = replace(images, distractors=among)
        whole = hashlib.sha256(read.encode())
        for size, numbers in among.items():
            whole.update(f"{size}".encode() + numbers.numpy().astype("<i8").tobytes())
        self.content = f"sha256:{whole.hexdigest()}"


class _Probe(NamedTuple):
    """A face that is looked for."""

    path: str
    label: int
    name: str


def _found(root: Path) -> tuple[Path, Path]:
    """The folder of the data set, and that of the devkit's lists in it."""
    for folder in (*(root / name for name in _FOLDERS), root):
        for lists in (folder / name for name in _LISTS):
            if (lists / _PROBES).is_file():
                return folder, lists
    raise DataMissingError(
        f"{_FOLDERS[0]}/{_LISTS[0]}/{_PROBES} is missing: looked in {root.absolute()}; put the data set there, or set "
        "METRICSWEEP_DATA (or --data) to the folder that holds it"
    )


def _probes(folder: Path, path: Path, *, dropped: bool, official: bool) -> list[_Probe]:
    """The probes of the devkit, person by person."""
    held = _read(path)
    paths = _paths(path, held)
    people = held.get("id", [Path(one).parent.name for one in paths])
    if (
        not isinstance(people, list)
        or len(people) != len(paths)
        or not all(one and isinstance(one, str) for one in people)
    ):
        named = f"{sum(map(bool, people)):,} names" if isinstance(people, list) else "no list"
        raise DataDamagedError(f"{path}: expected in `id` whom each of the {len(paths):,} probes shows; found {named}")
    numbers = {person: number for number, person in enumerate(sorted(set(people)))}
    if official and (len(numbers), len(paths)) != _OFFICIAL:
        wanted = f"expected {_OFFICIAL[1]:,} of {_OFFICIAL[0]}, or set its `official: false`"
        raise DataDamagedError(f"{path} lists {len(paths):,} probes of {len(numbers):,} people; {wanted}")
    noisy = _noise(folder / "facescrub_noises.txt") if dropped else frozenset()
    every = [_Probe(one, numbers[person], person) for one, person in zip(paths, people, strict=True)]
    kept = sorted((one for one in every if Path(one.path).name not in noisy), key=lambda one: one.label)
    if len({one.label for one in kept}) != len(numbers):
        raise DataDamagedError(f"{folder / 'facescrub_noises.txt'} drops every probe of some people; fetch it again")
    return kept


def _strangers(folder: Path, lists: Path, sizes: Sequence[int], draw: int, *, dropped: bool) -> dict[int, list[str]]:
    """The paths of the distractors of each size."""
    if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1 or draw < 1:
        raise ValueError(f"dataset.sizes, dataset.draw: expected rising numbers from 1 on, found {[*sizes]} and {draw}")
    noisy = _noise(folder / "megaface_noises.txt") if dropped else frozenset()
    found = {}
    for size in sizes:
        path = lists / f"megaface_features_list.json_{size}_{draw}"
        paths = _paths(path, _read(path))
        if len(paths) != size or len(set(paths)) != size:
            raise DataDamagedError(f"{path}: expected {size:,} different images, found {len(set(paths)):,}")
        found[size] = [one for one in paths if _tail(one) not in noisy]
    return found


def _every(strangers: Mapping[int, Sequence[str]]) -> list[str]:
    """All distractors, each once."""
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
    """The images that a list of the devkit names, below the folder of all of them."""
    paths = held.get("path")
    if not isinstance(paths, list) or not paths or not all(isinstance(one, str) for one in paths):
        raise DataDamagedError(f"{path}: expected a list of images in `path`")
    try:
        return [inside(one) for one in paths]
    except ValueError as error:
        raise DataDamagedError(f"{path}: {error}") from error


def _noise(path: Path) -> frozenset[str]:
    """What a list of wrong images names: the second field of each line that is no comment, or the only one."""
    missing = (
        ": it names the images that InsightFace found to be wrong; put it there, or set the data set's `noise: kept`"
    )
    lines = read_text(path, missing).splitlines()
    fields = [line.strip().split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return frozenset(_tail(one[1] if len(one) > 1 else one[0]) for one in fields)


def _tail(path: str) -> str:
    """The end of a path by which InsightFace's lists know an image."""
    return "/".join(path.split("/")[-3:])
