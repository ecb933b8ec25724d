"""MNIST in its official halves, as classification has it."""

from pathlib import Path

from workers.datasets.mnist import half


class MnistHalves:
    """MNIST's handwritten digits, 28x28: all ten of the official training half train, all ten of its test half test.

    So the test split shows digits that were trained, as in SVMax's figure 7; `mnist` is retrieval of classes never
    seen. Read from the same files.
    """

    label = "MNIST, official halves"
    paper = "LeCun et al. 1998 (SVMax fig. 7)"
    classes = {"train": 10, "test": 10}
    images = {"train": 60000, "test": 10000}
    same_classes = True
    channels = 1
    side = 28
    manifest = "sha256:4bfaad78e8ac2acfc6134ae0dd52dea3405e49edb64820ff0c248a7274c9d9d0"

    def __init__(self, root: Path) -> None:
        self.train = half(root, "train", "train")
        self.test = half(root, "test", "t10k")
