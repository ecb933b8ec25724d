"""Singular value maximization, bounded."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor, nn

from workers.geometry import mean_singular_value, singular_bounds, unit


class SVMax(nn.Module):
    """exp((U - s_mu) / (U - L)), s_mu the mean singular value of the unit embeddings: 1 if spread, e if collapsed.

    `eta` is the paper's lambda. The bounds L and U use min(b, d) singular values, also if b < d (appendix B.2). A batch
    of one row, or embeddings of one dimension, cannot spread: the value is 1. `unit: false` takes s_mu of raw f as in
    SVMax's table 4, where L and U are no bounds.
    """

    label = "SVMax"
    paper = "SVMax eq. 4"
    formula = r"\exp\frac{U-s_\mu}{U-L},\quad s_\mu=\frac{1}{m}\sum_{k=1}^{m}\sigma_k(\hat F),\quad m=\min(b,d)"

    def __init__(self, *, eta: Annotated[float, Ge(0)] = 1.0, unit: bool = True) -> None:
        super().__init__()
        self.eta, self.unit = eta, unit

    def forward(self, embeddings: Tensor) -> Tensor:
        lower, upper = singular_bounds(*embeddings.shape)
        room = upper - lower
        missing = upper - mean_singular_value(unit(embeddings) if self.unit else embeddings)
        return (missing / room if room > 0 else missing * 0).exp()
