"""Fashion-MNIST, split by classes as MNIST is."""

from pathlib import Path
from typing import Final

import torch

from workers.data.images import content_hash
from workers.datasets._shared import idx_half

_NAMES: Final = (
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


class FashionMnist:
    """Grey pictures of clothes, 28x28: 0 to 4 of the official training half train, 5 to 9 of its test half test.

    Read from the IDX files that torchvision leaves in `FashionMNIST/raw`, gzipped or not.
    """

    label = "Fashion-MNIST"
    paper = "Xiao et al. 2017"
    classes = {"train": 5, "test": 5}
    images = {"train": 30000, "test": 5000}
    channels = 1
    side = 28
    manifest = None

    def __init__(self, root: Path, *, official: bool = True, content: str | None = None) -> None:
        self.official, self.expected = official, content
        trains = torch.arange(10) <= 4
        self.train = idx_half(root, "FashionMNIST/raw", "train", _NAMES).of_classes(trains)
        self.test = idx_half(root, "FashionMNIST/raw", "t10k", _NAMES).of_classes(~trains)
        self.content = content_hash(self)
