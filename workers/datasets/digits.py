"""scikit-learn's digits: the bundled data set, small enough for a demonstration on two cores."""

import numpy as np
import torch
from sklearn.datasets import load_digits

from workers.data.images import Images


class Digits:
    """1,797 handwritten digits of 8x8 pixels, bundled with scikit-learn: 0 to 5 train, 6 to 9 test."""

    label = "Digits"
    paper = "Alpaydin & Kaynak 1998, Optical Recognition of Handwritten Digits"
    classes = {"train": 6, "test": 4}
    images = {"train": 1083, "test": 714}
    channels = 1
    side = 8
    metrics = (
        "recall@1", "recall@2", "recall@4", "recall@8", "map@r", "r_precision", "nmi", "f1", "norm_mean", "norm_var",
        "s_mu", "s_mu_upper",
    )  # fmt: skip
    manifest = "sha256:02c53f7b261dcebf7f692ed8ace4c8ce421e998fc0bee137c917c77d840bb9cc"

    def __init__(self) -> None:
        every, trains = all_digits(), torch.arange(10) <= 5
        self.train = every.of_classes(trains)
        self.test = every.of_classes(~trains)


def all_digits() -> Images:
    """All ten digits in the order of scikit-learn."""
    bunch = load_digits()
    # Grey values are 0..16; rounding them to bytes loses nothing.
    pixels = torch.from_numpy(np.rint(bunch.images * (255 / 16)).astype(np.uint8)).unsqueeze(1)
    return Images(pixels, torch.from_numpy(bunch.target.astype(np.int64)), names=tuple("0123456789"))
