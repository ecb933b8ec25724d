"""Singular value maximization, unbounded."""

import math

from torch import Tensor, nn

from workers.geometry import mean_singular_value


class SVMaxUnbounded(nn.Module):
    """-s_mu, the mean singular value of the raw embeddings; without a lower bound unless the head's output is unit.

    `eta` is the paper's lambda.
    """

    label = "SVMax (unbounded)"
    paper = "SVMax eq. 1"
    version = 1

    def __init__(self, *, eta: float = 1.0) -> None:
        if not 0 <= eta < math.inf:
            raise ValueError(f"svmax_unbounded: eta must be a finite number of at least 0, found {eta!r}")
        super().__init__()
        self.eta = eta

    def forward(self, embeddings: Tensor) -> Tensor:
        """The unweighted value for raw embeddings [b, d]."""
        return -mean_singular_value(embeddings)
