"""Moments of the cosine over all pairs of images: from sums and Gram matrices, exact and without holding the pairs."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_ROWS = 2**14  # rows turned into float64 at a time


class Moments(NamedTuple):
    """Of the cosines of some pairs; NaN where there is no pair."""

    pairs: int
    mean: float
    std: float
    """The population's standard deviation."""


class PairCosines(NamedTuple):
    """Of pairs of two images."""

    positive: Moments
    """Pairs of one class: cos_ap."""
    negative: Moments
    """Pairs of two classes: cos_an."""

    @classmethod
    def unknown(cls) -> "PairCosines":
        """Of embeddings that are not finite."""
        nothing = Moments(0, math.nan, math.nan)
        return cls(nothing, nothing)


class _Sums(NamedTuple):
    """Number, sum and sum of squares of the cosines of some pairs."""

    pairs: int
    first: float
    second: float

    def plus(self, other: "_Sums") -> "_Sums":
        return _Sums(self.pairs + other.pairs, self.first + other.first, self.second + other.second)

    def less(self, other: "_Sums") -> "_Sums":
        return _Sums(self.pairs - other.pairs, self.first - other.first, self.second - other.second)

    def moments(self) -> Moments:
        if not self.pairs:
            return Moments(0, math.nan, math.nan)
        mean = self.first / self.pairs
        return Moments(self.pairs, mean, math.sqrt(max(0.0, self.second / self.pairs - mean * mean)))


def gram(rows: Tensor) -> Tensor:
    """X^T X of `rows` X [n, d], [d, d] in float64: the sum over rows of what each contributes, some rows at a time."""
    total = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
    for chunk in torch.split(rows, _ROWS):
        total.addmm_(chunk.double().T, chunk.double())
    return total


def pair_cosines(unit: Tensor, classes: Tensor, gallery: tuple[Tensor, Tensor] | None = None) -> PairCosines:
    """The moments of cos_ap and cos_an of unit embeddings [n, d] of classes [n].

    Pairs are those of two images, or of an image and one of the `gallery` where that is given. Sums are in float64.
    """
    others, other_classes = gallery or (unit, classes)
    everything = _between(unit, others)
    same = _Sums(0, 0.0, 0.0)
    mine, theirs = _by_class(classes), _by_class(other_classes)
    for label in sorted(mine.keys() & theirs.keys()):
        same = same.plus(_between(unit[mine[label]], others[theirs[label]]))
    negative = everything.less(same)
    if gallery is None:
        squares = unit.double().square().sum(dim=1)
        same = same.less(_Sums(len(unit), float(squares.sum()), float(squares.square().sum())))
    return PairCosines(same.moments(), negative.moments())


def _between(first: Tensor, second: Tensor) -> _Sums:
    """Over all pairs of a row of `first` [n, d] and one of `second` [m, d], by whichever is cheaper."""
    count, width = len(first) * len(second), first.shape[1]
    if count <= width * width:
        cosines = first.double() @ second.double().T
        return _Sums(count, float(cosines.sum()), float(cosines.square().sum()))
    # sum over pairs of (x.y)^2 is the inner product of both Gram matrices, X^T X and Y^T Y.
    mine = gram(first)
    squares = (mine * (mine if second is first else gram(second))).sum()
    return _Sums(count, float(first.double().sum(dim=0) @ second.double().sum(dim=0)), float(squares))


def _by_class(classes: Tensor) -> dict[int, Tensor]:
    """The indices of the images of each class that has any."""
    sizes = classes.bincount()
    groups = torch.split(classes.argsort(stable=True), sizes.tolist())
    return {label: group for label, group in enumerate(groups) if len(group)}
