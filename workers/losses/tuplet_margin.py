"""Tuplet margin loss with its intra-pair variance."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn

from workers.geometry import Masks, masks, over_negatives, unit

_NEAR = 1 - 1e-7  # a cosine is cut here: the angle's slope is infinite at 1, where identical images lie


class TupletMargin(nn.Module):
    """Mean over ordered positive pairs of log(1 + sum_n e^{scale (cos th_an - cos(th_ap - margin))}) + intra * L_intra.

    L_intra = E[(1 - eps) E cos_ap - cos_ap]_+^2 + E[cos_an - (1 + eps) E cos_an]_+^2 over all positive and all negative
    pairs. `margin` is in radians; in pytorch-metric-learning it is in degrees, and L_intra is a loss of its own. The
    scale stands in the loss's own paper, not in SEC's author response.
    """

    label = "Tuplet margin"
    paper = "Yu and Tao 2019 (SEC author response, table 4)"
    formula = (
        r"\frac{1}{|P|}\sum_{(a,p)\in P}\log\Bigl(1+\sum_{n}e^{s(\cos\theta_{an}-\cos(\theta_{ap}-m))}\Bigr)"
        r"+\lambda\Bigl(E\left[(1-\epsilon)E\cos\theta_{ap}-\cos\theta_{ap}\right]_+^2"
        r"+E\left[\cos\theta_{an}-(1+\epsilon)E\cos\theta_{an}\right]_+^2\Bigr)"
    )
    order = "free"

    def __init__(
        self,
        *,
        scale: Annotated[float, Gt(0)] = 64.0,
        margin: Annotated[float, Ge(0), Lt(math.pi / 2)] = 0.1,
        intra: Annotated[float, Ge(0)] = 0.5,
        epsilon: Annotated[float, Ge(0)] = 0.01,
    ) -> None:
        super().__init__()
        self.scale, self.margin, self.intra, self.epsilon = scale, margin, intra, epsilon

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        cosine = directions @ directions.T
        near = cosine.clamp(-_NEAR, _NEAR)
        eased = near * math.cos(self.margin) + (1 - near.square()).sqrt() * math.sin(self.margin)  # cos(th - margin)
        loss = over_negatives(self.scale * cosine, self.scale * eased, labels)
        return loss + self.intra * self.variance(cosine, masks(labels))

    def variance(self, cosine: Tensor, pairs: Masks) -> Tensor:
        """L_intra, unweighted, of cosines [b, b]."""
        low = (1 - self.epsilon) * _mean(cosine, pairs.positive) - cosine
        high = cosine - (1 + self.epsilon) * _mean(cosine, pairs.negative)
        return _mean(low.relu().square(), pairs.positive) + _mean(high.relu().square(), pairs.negative)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of the values [b, b] in the mask; zero if it is empty."""
    return torch.where(mask, values, 0 * values).sum() / mask.sum().clamp(min=1)
