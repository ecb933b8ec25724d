"""Triplet loss with semihard negatives as TensorFlow mines them."""

import math
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn

from workers.geometry import squared_distances, unit


class Semihard(nn.Module):
    """Mean of max(0, margin + D_ap - D_an) over ALL ordered positive pairs, D the squared distance of unit embeddings.

    n is the nearest negative that is farther from a than p is, or the farthest negative where there is none: what SEC's
    code and TensorFlow's `triplet_semihard_loss` do, and no miner of pytorch-metric-learning does. Zero on a batch
    without positive pairs or without negatives.
    """

    label = "Semihard triplet"
    paper = "FaceNet (SEC table 3)"
    formula = (
        r"\frac{1}{|P|}\sum_{(a,p)\in P}\left[m+D_{ap}-D_{an^*}\right]_+,"
        r"\quad n^*=\underset{n:\,D_{an}>D_{ap}}{\mathrm{argmin}}\,D_{an},\quad D_{ij}=\|\hat f_i-\hat f_j\|^2"
    )
    order = "free"

    def __init__(self, *, margin: Annotated[float, Ge(0)] = 0.2) -> None:
        super().__init__()
        self.margin = margin

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        distances = squared_distances(unit(embeddings))
        same = labels[:, None] == labels[None, :]
        negatives = (~same).sum(dim=1, keepdim=True)
        positive = (same & (negatives > 0)).fill_diagonal_(False)
        if not bool(positive.any()):
            return distances.sum() * 0

        # Each anchor's negatives in ascending order, so that the one sought for p is the first beyond D_ap.
        ascending = distances.masked_fill(same, math.inf).sort(dim=1).values
        beyond = torch.searchsorted(ascending.detach(), distances.detach(), right=True)
        nearest_beyond = ascending.gather(1, torch.minimum(beyond, (negatives - 1).clamp(min=0)))
        return (self.margin + distances - nearest_beyond)[positive].relu().mean()
