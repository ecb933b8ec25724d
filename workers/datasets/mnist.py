"""MNIST, split by classes as retrieval asks for."""

from pathlib import Path

import torch

from workers.data.images import Images
from workers.datasets._shared import idx_half


class Mnist:
    """MNIST's handwritten digits, 28x28: 0 to 4 of the official training half train, 5 to 9 of its test half test.

    Read from `mnist_train.npz` and `mnist_test.npz` (arrays `image`, `label`), or from the IDX files that torchvision
    leaves in `MNIST/raw`, gzipped or not.
    """

    label = "MNIST"
    paper = "LeCun et al. 1998"
    classes = {"train": 5, "test": 5}
    images = {"train": 30596, "test": 4861}
    channels = 1
    side = 28
    manifest = "sha256:ab5d0cd8cd7dcb7e5e35e98189bb59c9001c3bdae418fe74cc88a0eaeec7abb3"

    def __init__(self, root: Path) -> None:
        trains = torch.arange(10) <= 4
        self.train = half(root, "train", "train").of_classes(trains)
        self.test = half(root, "test", "t10k").of_classes(~trains)


def half(root: Path, name: str, prefix: str) -> Images:
    """All ten digits of an official half."""
    return idx_half(root, "MNIST/raw", prefix, "0123456789", [f"mnist_{name}.npz"])
