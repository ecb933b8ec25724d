"""CIFAR-100: small photographs, with the same hundred classes in both halves."""

from pathlib import Path

from workers.data import listing
from workers.data.images import content_hash


class Cifar100:
    """60,000 photographs of 32x32 pixels, 600 of each of a hundred classes: the official halves.

    Read from `cifar-100-python/` or `cifar-100-binary/`. `official: false` takes a part of the data set.
    """

    label = "CIFAR-100"
    paper = "Krizhevsky 2009"
    classes = {"train": 100, "test": 100}
    images = {"train": 50000, "test": 10000}
    same_classes = True
    channels = 3
    side = 32
    manifest = None

    def __init__(self, root: Path, *, official: bool = True, content: str | None = None) -> None:
        self.official, self.expected = official, content
        self.train, self.test = (listing.hundred(root, half) for half in listing.HALVES)
        self.content = content_hash(self)
