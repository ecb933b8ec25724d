"""Spherical embedding constraint with a constant norm."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import torch
from annotated_types import Ge, Gt
from torch import Tensor, nn

from workers import geometry

_PRINTED = 8.7


class SecFixed(nn.Module):
    """Mean of (||f|| - mu)^2 with mu constant.

    `source` decides mu. `constant`: the number `mu`, by default 8.70, which SEC's figure 6 prints for Cars.
    `training_set`: the mean norm of all training images before the first iteration, as evaluations see them; this is
    the paper's definition of that number. With `every` it is measured again each time so many iterations are done: mu
    over all features, which moves as they do. `first_batch`: the mean norm of the first batch, rho 0 in the authors'
    code of SEC-EMA. A measured mu is kept in the checkpoint.
    """

    label = "SEC (fixed norm)"
    paper = "SEC figure 6"
    formula = r"\frac{1}{b}\sum_{i}\left(\|f_i\|-\mu\right)^2,\quad\mu\ \text{constant}"
    norms = True
    added = ("every",)
    only_where = {"mu": {"source": "constant"}, "every": {"source": "training_set"}}
    measured: Tensor

    def __init__(
        self,
        *,
        eta: Annotated[float, Ge(0)] = 1.0,
        mu: Annotated[float, Gt(0)] | None = None,
        source: Literal["constant", "first_batch", "training_set"] = "constant",
        every: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        if every is not None and source != "training_set":
            raise ValueError(f"sec_fixed: every is only for `source: training_set`, found source {source!r}")
        if mu is not None and source != "constant":
            raise ValueError(f"sec_fixed: mu is only for `source: constant`, found mu {mu!r} and source {source!r}")
        super().__init__()
        self.eta, self.source, self.every = eta, source, every
        self.mu = _PRINTED if mu is None else mu
        self.register_buffer("measured", torch.tensor(math.nan))

    def begin(self, mean_norm: Callable[[], float]) -> None:
        """Before the first iteration and after `every`; `mean_norm` gives the mean norm of the training images."""
        if self.source == "training_set":
            self.measured.fill_(mean_norm())

    def forward(self, embeddings: Tensor) -> Tensor:
        """The unweighted value for raw embeddings [b, d]; NaN where `begin` should have measured mu and did not."""
        lengths = geometry.norms(embeddings)
        return (lengths - self._mu(lengths.detach())).square().mean()

    def _mu(self, lengths: Tensor) -> Tensor | float:
        if self.source == "constant":
            return self.mu
        mu = self.measured.to(lengths.dtype)
        if self.source == "first_batch":
            mu = torch.where(mu.isnan(), lengths.mean(), mu)  # no branch: it would wait for the device
            if self.training:
                self.measured.copy_(mu)
        return mu
