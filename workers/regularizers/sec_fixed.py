"""Spherical embedding constraint with a constant norm."""

import math

import torch
from torch import Tensor, nn

from workers import geometry


class SecFixed(nn.Module):
    """Mean of (||f|| - mu)^2 with mu constant.

    SEC's figure 6 takes mu 8.70, the mean norm of Cars' training set before the first iteration. Without a number
    (`mu: null`) it is the mean norm of the first batch, kept in the checkpoint: rho 0 in the authors' code of SEC-EMA.
    """

    label = "SEC (fixed norm)"
    paper = "SEC figure 6"
    version = 1
    norms = True
    first: Tensor

    def __init__(self, *, eta: float = 1.0, mu: float | None = 8.7) -> None:
        if not 0 <= eta < math.inf:
            raise ValueError(f"sec_fixed: eta must be a finite number of at least 0, found {eta!r}")
        if mu is not None and not 0 < mu < math.inf:
            raise ValueError(f"sec_fixed: mu must be a finite number above 0, or null, found {mu!r}")
        super().__init__()
        self.eta = eta
        self.mu = mu
        self.register_buffer("first", torch.tensor(math.nan))

    def forward(self, embeddings: Tensor) -> Tensor:
        """The unweighted value for raw embeddings [b, d]."""
        lengths = geometry.norms(embeddings)
        return (lengths - (self._first(lengths.detach().mean()) if self.mu is None else self.mu)).square().mean()

    def _first(self, mean: Tensor) -> Tensor:
        """The mean norm of the first batch, where `mean` is that of the present one."""
        first = torch.where(self.first.isnan(), mean, self.first.to(mean.dtype))  # no branch: it would wait
        if self.training:
            self.first.copy_(first)
        return first
