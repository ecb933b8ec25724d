"""Omniglot: many classes with few images each, the closest small analogue of the papers' data sets."""

from pathlib import Path
from typing import Final

import numpy as np
import torch

from workers.contract import DataDamagedError, DataMissingError
from workers.data import listing
from workers.data.images import Images
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture, read_npz

_PACK: Final = "omniglot28.npz"
_HALVES: Final = ("images_background", "images_evaluation")


class Omniglot:
    """1,623 handwritten characters, 28x28, 20 drawings each: the background set trains, the evaluation set tests.

    Read from `omniglot28.npz` with the arrays `image` (uint8 [32460, 28, 28]), `label` and `split` (0: background), or
    from the official drawings, `images_background/ALPHABET/CHARACTER/*.png` and `images_evaluation/`, in `omniglot-py/`
    or the data root. Both give the same: of drawings of 105x105 each pixel is the mean of those that fall on it, and
    strokes are bright.
    """

    label = "Omniglot"
    paper = "Lake et al. 2015"
    classes = {"train": 964, "test": 659}
    images = {"train": 19280, "test": 13180}
    channels = 1
    side = 28
    manifest = "sha256:c50f2237111b05736fa7396766846bcabfc4400d13c5d99947509df94a88b9c5"

    def __init__(self, root: Path, scratch: Path) -> None:
        if (root / _PACK).is_file():
            self.train, self.test = _packed(root / _PACK)
            return
        folder = _folder(root)
        source = Source("omniglot", Form("box", 28, "ink"), scratch)
        # Its hash is that of `manifest`: over the pixels as the pack has them, which is compared where it is loaded.
        self.train, self.test, *_ = listing.load(source, *(_drawings(folder / half) for half in _HALVES))


def _folder(root: Path) -> Path:
    """The folder of both official halves; raises DataMissingError."""
    for folder in (root / "omniglot-py", root):
        if any((folder / half).is_dir() for half in _HALVES):
            return folder
    raise DataMissingError(
        f"{_PACK} is missing: looked in {root.absolute()} for {_PACK} or omniglot-py/{_HALVES[0]}; fetch the data set, "
        "or set METRICSWEEP_DATA (or --data) to the folder that holds it"
    )


def _drawings(folder: Path) -> list[Listed]:
    """The drawings of a half ordered by name; a class is an alphabet with a character."""
    if not folder.is_dir():
        raise DataMissingError(f"{folder} is missing; fetch the data set again")
    found = []
    for path in sorted(folder.glob("*/*/*.png")):
        alphabet, character, file = path.relative_to(folder).parts
        if not file.startswith("."):  # such as those that a Mac leaves
            found.append(Listed(Picture(path), f"{alphabet}/{character}", name=f"{alphabet} {character}"))
    if not found:
        raise DataDamagedError(f"{folder}: expected folders ALPHABET/CHARACTER of drawings; found none")
    return found


def _packed(path: Path) -> tuple[Images, Images]:
    """Both halves of the pack; raises DataDamagedError."""
    image, label, split = read_npz(path, ("image", "label", "split"))
    count = len(label)
    if image.dtype != np.uint8 or image.shape != (count, 28, 28) or not label.shape == split.shape == (count,):
        raise DataDamagedError(f"{path}: expected {count:,} images of 28x28 bytes, each with a label and a split")
    train, test = (
        Images(torch.from_numpy(image[split == half]).unsqueeze(1), listing.contiguous(label[split == half]))
        for half in (0, 1)
    )
    return train, test
