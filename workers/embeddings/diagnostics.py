"""What the papers' curves show of embeddings while a training runs: plain numbers, to be noted beside a step."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from workers.embeddings import geometry
from workers.embeddings.cosines import pair_cosines


def batch_statistics(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """Of raw embeddings [b, d] of a batch with labels [b]: what SEC's figures 6 and SVMax's 3 trace.

    `norm_mean` and `norm_var` (population) of ||f||; `s_mu`, the mean singular value of f^; `cos_ap` and `cos_an`, the
    mean cosine over pairs of one class and of two, NaN where the batch has none. All are NaN where f is not finite.
    """
    raw = geometry.precise(embeddings.detach())
    names = ("norm_mean", "norm_var", "s_mu", "cos_ap", "cos_an")
    if not bool(raw.isfinite().all()):
        return dict.fromkeys(names, math.nan)
    length, unit = geometry.norms(raw).double(), geometry.unit(raw)
    cosines = pair_cosines(unit, torch.unique(labels, return_inverse=True)[1])
    values = (
        float(length.mean()),
        float(length.var(correction=0)),
        float(geometry.mean_singular_value(unit)),
        cosines.positive.mean,
        cosines.negative.mean,
    )
    return dict(zip(names, values, strict=True))


class Variation(NamedTuple):
    """How far the direction of each image's embedding turned, [n] in float64."""

    angle: Tensor
    """In radians, 0 to pi."""
    one_minus_cos: Tensor
    """1 - cos of it, 0 to 2."""

    def summary(self) -> dict[str, float]:
        """Mean and population variance of both, by name; the variance of the angle is the legend of SEC's figure 7."""
        return {
            f"direction_variation_{name}_{moment}": float(value)
            for name, values in zip(self._fields, self, strict=True)
            for moment, value in (("mean", values.mean()), ("var", values.var(correction=0)))
        }


def direction_variation(before: Tensor, after: Tensor) -> Variation:
    """How the directions f^ of the same images differ between two moments, such as 1000 iterations apart (SEC fig. 7).

    `before` and `after` are embeddings [n, d], raw or unit, in one order and by the same transform. Raises ValueError
    where their shapes differ.
    """
    if before.shape != after.shape or before.ndim != 2:
        raise ValueError(f"expected two [n, d] of one shape, found {[*before.shape]} and {[*after.shape]}")
    first, second = (geometry.unit(side.detach().double()) for side in (before, after))
    # The arc cosine loses half the digits of a small angle; both of these lose none.
    apart = geometry.norms(first - second)
    angle = 2 * torch.atan2(apart, geometry.norms(first + second))
    return Variation(angle, apart.square() / 2)


class Directions:
    """The directions of the training images as they were some iterations ago, to compare with at the next look."""

    def __init__(self) -> None:
        self._before: Tensor | None = None

    def look(self, embeddings: Tensor) -> Variation | None:
        """The variation since the last look, and remember these embeddings [n, d]; None at the first."""
        before, self._before = self._before, geometry.unit(embeddings.detach()).cpu()
        return None if before is None else direction_variation(before, self._before)

    def state_dict(self) -> dict[str, Tensor | None]:
        """What a checkpoint must hold to go on: n x d numbers."""
        return {"before": self._before}

    def load_state_dict(self, state: dict[str, Tensor | None]) -> None:
        """Go on where `state_dict` was taken."""
        self._before = state["before"]
