"""Fashion-MNIST, split by classes as MNIST is."""

from pathlib import Path
from typing import Final

import numpy as np
import torch

from workers.data.images import Images, content_hash
from workers.data.pictures import find, read_idx_pair

_NAMES: Final = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


class FashionMnist:
    """Grey pictures of clothes, 28x28: 0 to 4 of the official training half train, 5 to 9 of its test half test.

    Read from the IDX files that torchvision leaves in `FashionMNIST/raw`, gzipped or not.
    """

    label = "Fashion-MNIST"
    paper = "Xiao et al. 2017"
    version = 1
    classes = {"train": 5, "test": 5}
    images = {"train": 30000, "test": 5000}
    channels = 1
    side = 28
    manifest = None

    def __init__(self, root: Path, *, official: bool = True, content: str | None = None) -> None:
        self.official, self.expected = official, content
        trains = torch.arange(10) <= 4
        self.train = _half(root, "train").of_classes(trains)
        self.test = _half(root, "t10k").of_classes(~trains)
        self.content = content_hash(self)


def _half(root: Path, prefix: str) -> Images:
    file = f"{prefix}-images-idx3-ubyte"
    image, label = read_idx_pair(find(root, [f"FashionMNIST/raw/{file}{gz}" for gz in ("", ".gz")]))
    pixels = torch.from_numpy(image.copy()).unsqueeze(1)
    return Images(pixels, torch.from_numpy(label.astype(np.int64)), names=_NAMES)
