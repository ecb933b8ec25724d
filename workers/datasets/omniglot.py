"""Omniglot: many classes with few images each, the closest small analogue of the papers' data sets."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from workers.images import DataDamagedError, Images
from workers.packs import find, read_npz


class Omniglot:
    """1,623 handwritten characters, 28x28, 20 drawings each: the background set trains, the evaluation set tests.

    Read from `omniglot28.npz` with the arrays `image` (uint8 [32460, 28, 28]), `label` and `split` (0: background).
    """

    label = "Omniglot"
    paper = "Lake et al. 2015"
    version = 1
    classes: ClassVar[Mapping[str, int]] = {"train": 964, "test": 659}
    images: ClassVar[Mapping[str, int]] = {"train": 19280, "test": 13180}
    channels = 1
    side = 28
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var",
        "s_mu",
    )  # fmt: skip
    manifest = "sha256:c50f2237111b05736fa7396766846bcabfc4400d13c5d99947509df94a88b9c5"

    def __init__(self, root: Path) -> None:
        path = find(root, ["omniglot28.npz"])
        image, label, split = read_npz(path, ("image", "label", "split"))
        count = len(label)
        if image.dtype != np.uint8 or image.shape != (count, 28, 28) or split.shape != (count,):
            raise DataDamagedError(f"{path}: expected {count:,} images of 28x28 bytes, each with a label and a split")
        self.train = _half(image, label, split == 0)
        self.test = _half(image, label, split == 1)


def _half(image: np.ndarray, label: np.ndarray, chosen: np.ndarray) -> Images:
    """The chosen images, their labels renumbered from 0."""
    _, renumbered = np.unique(label[chosen], return_inverse=True)
    return Images(torch.from_numpy(image[chosen]).unsqueeze(1), torch.from_numpy(renumbered.astype(np.int64)))
