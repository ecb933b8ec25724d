"""What data sets share: photographs in files, pairs of faces to verify, and digits in IDX files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge

from workers.contract import DataDamagedError
from workers.data import faces, listing
from workers.data.images import Images
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, find, read_idx, read_npz


class Photographs:
    """Photographs in two halves with official counts, whose shorter side becomes `side` pixels."""

    channels = 3
    side = 256
    manifest = None
    _passed: tuple[str, ...] = ()  # notes on skipped files

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        official: bool = True,
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        train, test = self._halves(root)
        source = Source(_name(self), Form(resize, side), scratch, type(self), official, on_error)
        self.train, self.test, self.content, repeated = listing.load(source, train, test)
        self.notes = self._passed + repeated

    def _halves(self, root: Path) -> Sequence[Sequence[Listed]]:
        """The images that train, and those that test; raises DataMissingError, DataDamagedError."""
        raise NotImplementedError


class FacePairs:
    """Pairs of faces in ten folds, half of them of one person, that only test."""

    classes = {"train": 0}
    images = {"train": 0}
    pairs: dict[str, int]
    channels = 3
    side = 112
    manifest = None
    _files: tuple[str, ...]  # names of InsightFace's `.bin` file
    _folders: tuple[str, ...]  # folders that may have `pairs.txt` and the images of each person instead

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        side: Annotated[int, Ge(1)] = 112,
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        self.train = no_faces(side)
        pairs = self.pairs["test"] if official else None
        self.test, self.content = faces.load(_name(self), root, scratch, side, self._files, self._folders, pairs)


def _name(dataset: object) -> str:
    return type(dataset).__module__.rpartition(".")[2]


def no_faces(side: int) -> Images:
    """The empty training split of a data set without training images."""
    return Images(torch.zeros(0, 3, side, side, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))


def idx_half(root: Path, folder: str, prefix: str, names: Sequence[str], pack: Sequence[str] = ()) -> Images:
    """An official half of MNIST or a data set like it, from its IDX files or from the file `pack`.

    Raises DataMissingError, DataDamagedError.
    """
    path = find(root, [*pack, *(f"{folder}/{prefix}-images-idx3-ubyte{gz}" for gz in ("", ".gz"))])
    if path.suffix == ".npz":
        image, label = read_npz(path, ("image", "label"))
    else:
        twin = path.with_name(path.name.replace("images-idx3", "labels-idx1"))
        image, label = read_idx(path), read_idx(find(twin.parent, [twin.name]))
    fits = label.ndim == 1 and image.dtype == np.uint8 and image.shape == (len(label), 28, 28)
    if not fits or not np.isin(label, np.arange(10)).all():
        raise DataDamagedError(f"{path}: expected {len(label):,} images of 28x28 bytes with labels 0 to 9")
    pixels = torch.from_numpy(image.copy()).unsqueeze(1)
    return Images(pixels, torch.from_numpy(label.astype(np.int64)), names=tuple(names))
