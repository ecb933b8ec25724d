"""Spherical embedding constraint."""

import math

from torch import Tensor, nn

from workers.embeddings import geometry


class Sec(nn.Module):
    """Mean of (||f|| - mu)^2, mu the mean norm of the batch: the population variance of its norms."""

    label = "SEC"
    paper = "SEC"
    formula = r"\frac{1}{b}\sum_{i}\left(\|f_i\|-\mu\right)^2,\quad\mu=\frac{1}{b}\sum_{j}\|f_j\|"
    version = 1
    norms = True

    def __init__(self, *, eta: float = 1.0) -> None:
        if not 0 <= eta < math.inf:
            raise ValueError(f"sec: eta must be a finite number of at least 0, found {eta!r}")
        super().__init__()
        self.eta = eta

    def forward(self, embeddings: Tensor) -> Tensor:
        """The unweighted value for raw embeddings [b, d]."""
        lengths = geometry.norms(embeddings)
        return (lengths - lengths.mean()).square().mean()
