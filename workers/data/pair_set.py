"""What people drew up to judge faces by: pairs to verify, and distractors to find a face among."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor


class PairSet(NamedTuple):
    """Pairs of a split's images that are verified, on the CPU and in the order of their file."""

    first: Tensor  # int64 [p], the number of an image
    second: Tensor  # int64 [p]
    same: Tensor  # bool [p], whether both show one class
    fold: Tensor  # int64 [p], from 0


Distractors = Mapping[int, Tensor]
"""Among whom a face is looked for: by their number n, from few to many, the images int64 [n] on the CPU."""
