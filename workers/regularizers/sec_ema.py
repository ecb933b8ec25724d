"""Spherical embedding constraint with a moving average of the norm."""

from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from workers import geometry


class SecEma(nn.Module):
    """Mean of (||f|| - mu)^2, where mu <- (1 - rho) mu + rho * mean norm of the batch, from the first batch's mean on.

    mu is constant in the gradient, changes in training mode only, and is part of the checkpoint.
    """

    label = "SEC-EMA"
    paper = "SEC eq. 31"
    formula = (
        r"\frac{1}{b}\sum_{i}\left(\|f_i\|-\mu_t\right)^2,\quad\mu_t=(1-\rho)\mu_{t-1}+\frac{\rho}{b}\sum_{j}\|f_j\|"
    )
    norms = True
    mu: Tensor
    started: Tensor

    def __init__(self, *, eta: Annotated[float, Ge(0)] = 1.0, rho: Annotated[float, Gt(0), Le(1)] = 0.01) -> None:
        super().__init__()
        self.eta, self.rho = eta, rho
        self.register_buffer("mu", torch.zeros(()))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def forward(self, embeddings: Tensor) -> Tensor:
        lengths = geometry.norms(embeddings)
        mean = lengths.detach().mean()
        mu = self.mu.to(mean.dtype)
        if self.training:
            mu = (1 - self.rho) * mu + self.rho * mean
        mu = torch.where(self.started, mu, mean)  # no branch: it would wait for the device
        if self.training:
            self.mu.copy_(mu)
            self.started.fill_(True)
        return (lengths - mu).square().mean()
