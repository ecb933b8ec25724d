"""L2 regularization of embeddings."""

import math

from torch import Tensor, nn

from workers.embeddings.geometry import precise


class L2(nn.Module):
    """Mean of ||f||^2 over the batch, without a factor 1/2 and without a root."""

    label = "L2"
    paper = "SEC eq. 30"
    formula = r"\frac{1}{b}\sum_{i}\|f_i\|^2"
    version = 1
    norms = True

    def __init__(self, *, eta: float = 1.0) -> None:
        if not 0 <= eta < math.inf:
            raise ValueError(f"l2: eta must be a finite number of at least 0, found {eta!r}")
        super().__init__()
        self.eta = eta

    def forward(self, embeddings: Tensor) -> Tensor:
        """The unweighted value for raw embeddings [b, d]."""
        return precise(embeddings).square().sum(dim=1).mean()
