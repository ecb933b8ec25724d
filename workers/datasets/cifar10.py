"""CIFAR-10: small photographs, with the same ten classes in both halves."""

from pathlib import Path
from typing import Literal

from workers.data import listing
from workers.data.images import content_hash


class Cifar10:
    """60,000 photographs of 32x32 pixels, 6,000 of each of ten classes: the official halves.

    Read from `cifar-10-batches-py/` or `cifar-10-batches-bin/`; with `source: jpeg` from `cifar10_train_jpeg.npz` and
    `cifar10_test_jpeg.npz`, whose images have lost some detail. `official: false` takes a part of the data set.
    """

    label = "CIFAR-10"
    paper = "Krizhevsky 2009"
    classes = {"train": 10, "test": 10}
    images = {"train": 50000, "test": 10000}
    same_classes = True
    channels = 3
    side = 32
    manifest = None

    def __init__(
        self,
        root: Path,
        scratch: Path,
        *,
        source: Literal["original", "jpeg"] = "original",
        official: bool = True,
        content: str | None = None,
    ) -> None:
        self.official, self.expected = official, content
        if source == "jpeg":
            self.train, self.test = (
                listing.jpegs(root, f"cifar10_{half}_jpeg.npz", scratch) for half in listing.HALVES
            )
        else:
            self.train, self.test = (listing.ten(root, half) for half in listing.HALVES)
        self.content = content_hash(self)
