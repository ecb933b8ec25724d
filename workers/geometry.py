"""Geometry of embeddings [n, d]: norms, directions, distances, cosines, singular values and pairs."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

_ROWS = 2**14  # rows turned into float64 at a time


class Moments(NamedTuple):
    """Moments of the cosines of some pairs."""

    mean: float
    std: float  # the population standard deviation


NO_PAIRS = Moments(math.nan, math.nan)


class PairCosines(NamedTuple):
    """The moments of the cosines of positive and of negative pairs."""

    positive: Moments  # pairs of one class: cos_ap
    negative: Moments  # pairs of two classes: cos_an


def gram(rows: Tensor) -> Tensor:
    """X^T X of `rows` X [n, d], in float64 [d, d], computed in chunks of rows."""
    total = rows.new_zeros(rows.shape[1], rows.shape[1], dtype=torch.float64)
    for chunk in torch.split(rows, _ROWS):
        total.addmm_(chunk.double().T, chunk.double())
    return total


def pair_cosines(unit: Tensor, classes: Tensor, gallery: tuple[Tensor, Tensor] | None = None) -> PairCosines:
    """The moments of cos_ap and cos_an of unit embeddings [n, d] with classes [n].

    Pairs are those of two images, or of an image and one of the `gallery` if it is given. Sums are in float64.
    """
    others, other_classes = gallery or (unit, classes)
    mine, theirs = _by_class(classes), _by_class(other_classes)
    same = torch.zeros(3, dtype=torch.float64)
    for label in sorted(mine.keys() & theirs.keys()):
        same += _between(unit[mine[label]], others[theirs[label]])
    negative = _between(unit, others) - same
    if gallery is None:
        squares = unit.double().square().sum(dim=1)
        same -= torch.tensor([len(unit), float(squares.sum()), float(squares.square().sum())], dtype=torch.float64)
    return PairCosines(_moments(same), _moments(negative))


def _between(first: Tensor, second: Tensor) -> Tensor:
    """Number, sum, and sum of squares of the cosines of a row of `first` [n, d] with a row of `second` [m, d].

    Computed by the cheaper of two ways: float64 [3] on the CPU.
    """
    count, width = len(first) * len(second), first.shape[1]
    if count <= width * width:
        cosines = first.double() @ second.double().T
        total, squares = cosines.sum(), cosines.square().sum()
    else:  # the sum over pairs of (x.y)^2 is the inner product of both Gram matrices, X^T X and Y^T Y
        mine = gram(first)
        total = first.double().sum(dim=0) @ second.double().sum(dim=0)
        squares = (mine * (mine if second is first else gram(second))).sum()
    return torch.tensor([count, float(total), float(squares)], dtype=torch.float64)


def _moments(sums: Tensor) -> Moments:
    pairs, first, second = sums.tolist()
    if not pairs:
        return NO_PAIRS
    mean = first / pairs
    return Moments(mean, math.sqrt(max(0.0, second / pairs - mean * mean)))


def _by_class(classes: Tensor) -> dict[int, Tensor]:
    """The indices of the images of each class."""
    sizes = classes.bincount()
    groups = torch.split(classes.argsort(stable=True), sizes.tolist())
    return {label: group for label, group in enumerate(groups) if len(group)}


_TINY = 1e-12  # a row whose norm is below has no direction


def precise(values: Tensor) -> Tensor:
    """Converts `values` to float32, unless they are float64."""
    return values if values.dtype in {torch.float32, torch.float64} else values.float()


def norms(embeddings: Tensor) -> Tensor:
    """The Euclidean norm of each row, [n]. The gradient of a zero row is zero."""
    lengths: Tensor = torch.linalg.vector_norm(precise(embeddings), dim=1)
    return lengths


def unit(embeddings: Tensor) -> Tensor:
    """f^ = f / ||f||, row by row, [n, d].

    A zero row stays zero and gets no gradient; division by a small constant would give it a gradient of 1e12.
    """
    length = norms(embeddings)[:, None]
    return precise(embeddings) / length.masked_fill(length < _TINY, math.inf)


def squared_distances(embeddings: Tensor) -> Tensor:
    """||f_i - f_j||^2 for every pair of rows, [n, n]."""
    squares = embeddings.square().sum(dim=1)
    return (squares[:, None] + squares[None, :] - 2 * embeddings @ embeddings.T).clamp(min=0)


def singular_values(embeddings: Tensor) -> Tensor:
    """The min(n, d) singular values, largest first; NaN if a value is NaN or infinite, which LAPACK would refuse."""
    values = precise(embeddings)
    if not bool(values.isfinite().all()):
        return (values.sum() * math.nan).expand(min(values.shape))
    singular: Tensor = torch.linalg.svdvals(values)
    return singular


def mean_singular_value(embeddings: Tensor) -> Tensor:
    """s_mu, the mean of the min(n, d) singular values (SVMax eq. 1)."""
    return singular_values(embeddings).mean()


def singular_bounds(rows: int, columns: int) -> tuple[float, float]:
    """The least and greatest s_mu of `rows` unit rows in `columns` dimensions: L and U of SVMax eq. 4 and appendix B.2.

    Both divide by m = min(rows, columns), the number of singular values; they are equal if m = 1.
    """
    smaller = min(rows, columns)
    return math.sqrt(rows) / smaller, math.sqrt(rows / smaller)


def batch_statistics(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """The traces of SEC's figure 6 and SVMax's figure 3, for raw embeddings [b, d] of a batch with labels [b].

    `norm_mean` and `norm_var` (population) of ||f||; `s_mu`, the mean singular value of f^; `cos_ap` and `cos_an`, the
    mean cosine over pairs of one class and of two, NaN if there are none. All are NaN if f is not finite.
    """
    raw = precise(embeddings.detach())
    if not bool(raw.isfinite().all()):
        return dict.fromkeys(("norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an"), math.nan)
    length, directions = norms(raw).double(), unit(raw)
    cosines = pair_cosines(directions, torch.unique(labels, return_inverse=True)[1])
    return {
        "norm_mean": float(length.mean()),
        "norm_var": float(length.var(correction=0)),
        "s_mu": float(mean_singular_value(directions)),
        "cos_ap": cosines.positive.mean,
        "cos_an": cosines.negative.mean,
    }


class Variation(NamedTuple):
    """How far the direction of each image's embedding has turned, [n] in float64."""

    angle: Tensor  # in radians, 0 to pi
    one_minus_cos: Tensor  # 1 - cos of the angle, 0 to 2

    def summary(self) -> dict[str, float]:
        """Mean and population variance of angle and 1 - cosine, by name; SEC's figure 7 prints the variance of the
        angle.
        """
        return {
            f"direction_variation_{name}_{moment}": float(value)
            for name, values in zip(self._fields, self, strict=True)
            for moment, value in (("mean", values.mean()), ("var", values.var(correction=0)))
        }


def direction_variation(before: Tensor, after: Tensor) -> Variation:
    """How the directions f^ of the same images differ between two times (SEC fig. 7).

    `before` and `after` are embeddings [n, d] in the same order, raw or unit. Raises ValueError if their shapes differ.
    """
    if before.shape != after.shape or before.ndim != 2:
        raise ValueError(f"expected two [n, d] of one shape, found {[*before.shape]} and {[*after.shape]}")
    first, second = (unit(side.detach().double()) for side in (before, after))
    # The arc cosine loses half the digits of a small angle; both of these lose none.
    apart = norms(first - second)
    angle = 2 * torch.atan2(apart, norms(first + second))
    return Variation(angle, apart.square() / 2)


class Masks(NamedTuple):
    """Which ordered pairs of a batch are of one class and which of two, bool [b, b], without pairs of an image with
    itself.
    """

    positive: Tensor
    negative: Tensor


def masks(labels: Tensor) -> Masks:
    """The positive and negative pairs of a batch with labels [b]."""
    same = labels[:, None] == labels[None, :]
    return Masks(same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device), ~same)


def places(labels: Tensor) -> Tensor:
    """For each image, the number of earlier images of its class in the batch, [b]."""
    return (labels[:, None] == labels[None, :]).tril(-1).sum(dim=1)


def firsts(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The indices of the first and second image of each class with two images, both [classes] in the same order."""
    place = places(labels)
    second = (labels[:, None] == labels[None, :]) & (place == 1)
    anchors = ((place == 0) & second.any(dim=1)).nonzero()[:, 0]
    return anchors, second[anchors].int().argmax(dim=1)


def negatives_among(labels: Tensor, members: Tensor) -> Tensor:
    """Whether image b is in `members` (indices [n]) and of another class than image a, bool [b, b] by row a."""
    among = torch.zeros_like(labels, dtype=torch.bool)
    among[members] = True
    return masks(labels).negative & among


def over_negatives(logits: Tensor, own: Tensor, labels: Tensor) -> Tensor:
    """Mean over the ordered positive pairs (a, p) of log(1 + sum_n exp(logits[a, n] - own[a, p])), n negatives of a.

    `logits` and `own` are [b, b]. Zero without positive pairs or without negatives. Unlike lists of pairs, this needs
    only b^2 numbers, does not wait for the device, and is exact for large differences.
    """
    positive, negative = masks(labels)
    crowd = logits.masked_fill(~negative, -math.inf).logsumexp(dim=1, keepdim=True)
    terms = torch.logaddexp(crowd - own, torch.zeros_like(own))
    return (terms * positive).sum() / positive.sum().clamp(min=1)
