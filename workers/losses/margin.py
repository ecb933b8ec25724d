"""Margin loss with distance-weighted negatives and a learned boundary."""

import math
from typing import Annotated, Final, Literal

import torch
from annotated_types import Ge, Gt, Lt
from pytorch_metric_learning.losses import MarginLoss
from torch import Tensor, nn

from workers.geometry import masks, squared_distances, unit
from workers.training.determinism import RandomState

_CUTOFF: Final = 0.5  # nearer negatives are drawn as if they were this far: their gradients vary too much
_REACH: Final = 1.4  # negatives from here on are not drawn: their loss is nothing (the authors' code)


class Margin(nn.Module):
    """Sum over triplets of [D_ap - beta + margin]_+ + [beta - D_an + margin]_+ by the number of terms that are not 0.

    D is the Euclidean distance of f^. Each ordered positive pair draws one negative, with a probability that is the
    inverse of how often random directions are at its distance: distances below 0.5 count as 0.5, negatives from 1.4 on
    are left out. pytorch-metric-learning draws positives too, and by default fixes beta. `mining: all` takes all
    triplets instead. beta is learned, one for all or one `per_class`, without weight decay; `nu` times beta is added.
    """

    label = "Margin"
    paper = "Wu et al. 2017 (Proxy-ISA table 2)"
    formula = (
        r"\frac{\sum_{(a,p,n)}\left[D_{ap}-\beta+m\right]_++\left[\beta-D_{an}+m\right]_+}{\#\{\text{terms above }0\}}"
        r"+\nu\beta,\quad D_{ij}=\|\hat f_i-\hat f_j\|"
    )
    order = "free"
    random = True
    decayed = False

    def __init__(
        self,
        classes: int,
        *,
        margin: Annotated[float, Ge(0)] = 0.2,
        beta: Annotated[float, Gt(0), Lt(2)] = 1.2,
        learned: bool = True,
        per_class: bool = False,
        nu: Annotated[float, Ge(0)] = 0.0,
        mining: Literal["distance", "all"] = "distance",
    ) -> None:
        super().__init__()
        self.loss = MarginLoss(
            margin=margin, nu=nu, beta=beta, triplets_per_anchor="all", learn_beta=learned,
            num_classes=classes if per_class else None,
        )  # fmt: skip
        self.mining = mining
        self.draws = RandomState()

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        triplets = self._triplets(directions.detach(), labels) if self.mining == "distance" else None
        loss: Tensor = self.loss(directions, labels, triplets)
        return loss.sum()  # the library gives [1] where there is one beta

    def _triplets(self, directions: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchor, positive and drawn negative of each ordered positive pair, if the anchor has a negative in reach."""
        distance = squared_distances(directions).sqrt()
        pairs = masks(labels)
        eligible = pairs.negative & ~(distance >= _REACH)  # a NaN remains, for the loss to show it
        anchors, positives = (pairs.positive & eligible.any(dim=1, keepdim=True)).nonzero().unbind(dim=1)
        weight = log_rarity(distance.clamp(min=_CUTOFF), directions.shape[1]).masked_fill(~eligible, -math.inf)
        # The greatest of log w_n + g_n, g standard Gumbel, is at n with probability w_n / sum w.
        noise = self.draws.uniform(len(anchors), len(labels), like=weight).clamp(min=torch.finfo(torch.float32).tiny)
        negatives = (weight[anchors] - (-noise.log()).log()).argmax(dim=1) if len(anchors) else anchors
        return anchors, positives, negatives


def log_rarity(distance: Tensor, width: int) -> Tensor:
    """-log of the density of the distance between two random directions in `width` dimensions, up to a constant."""
    return (2 - width) * distance.log() - (width - 3) / 2 * torch.log1p(-distance.square() / 4)
