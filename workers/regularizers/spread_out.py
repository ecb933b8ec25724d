"""Spread-out regularizer: the moments of random directions for pairs of different classes (GOR)."""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from torch import Tensor, nn

from workers import geometry
from workers.geometry import masks
from workers.training.determinism import RandomState


class SpreadOut(nn.Module):
    """M1^2 + max(0, M2 - beta / d), M1 and M2 the means of <f^_a, f^_n> and of its square over pairs of two classes.

    Every image a has one partner n: `pairs: random` draws it anew in each batch, `negatives` takes the nearest one, the
    anchor's own negative in a batch-hard triplet. `eta` is the paper's alpha. `unit: false` multiplies raw f, as in
    SVMax's table 4, where it degenerates.
    """

    label = "Spread-out"
    paper = "Zhang et al. 2017 (SVMax tables 1 and 2)"
    formula = (
        r"M_1^2+\left[M_2-\frac{\beta}{d}\right]_+,\quad M_1=\frac{1}{|N|}\sum_{(a,n)\in N}\langle\hat f_a,"
        r"\hat f_n\rangle,"
        r"\quad M_2=\frac{1}{|N|}\sum_{(a,n)\in N}\langle\hat f_a,\hat f_n\rangle^2"
    )
    labelled = True
    random = True

    def __init__(
        self,
        *,
        eta: Annotated[float, Ge(0)] = 1.0,
        beta: Annotated[float, Ge(0)] = 1.0,
        pairs: Literal["random", "negatives"] = "random",
        unit: bool = True,
    ) -> None:
        super().__init__()
        self.eta, self.beta, self.pairs, self.unit = eta, beta, pairs, unit
        self.draws = RandomState()

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """The unweighted value for raw embeddings [b, d] with labels [b]; without labels, each image is a class."""
        rows = geometry.unit(embeddings) if self.unit else geometry.precise(embeddings)
        labels = torch.arange(len(rows), device=rows.device) if labels is None else labels
        negative = masks(labels).negative
        products = (rows * rows[self.partners(rows.detach(), negative)]).sum(dim=1)
        return self.penalty(products[negative.any(dim=1)], rows.shape[1])

    def partners(self, rows: Tensor, negative: Tensor) -> Tensor:
        """The index of each image's partner, [b], among those of its row in `negative` [b, b]; 0 where it has none."""
        if self.pairs == "random":
            preference = self.draws.uniform(len(rows), len(rows), like=rows)
        else:
            preference = -geometry.squared_distances(rows)
        return preference.masked_fill(~negative, -math.inf).argmax(dim=1)

    def penalty(self, products: Tensor, width: int) -> Tensor:
        """The unweighted value for the inner products [n] of pairs, in `width` dimensions; zero for no pairs."""
        if not len(products):
            return products.sum()
        return products.mean().square() + (products.square().mean() - self.beta / width).relu()
