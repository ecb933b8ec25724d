"""Singular value maximization, unbounded."""

from typing import Annotated

from annotated_types import Ge
from torch import Tensor, nn

from workers.geometry import mean_singular_value, unit


class SVMaxUnbounded(nn.Module):
    """-s_mu, the mean singular value of the embeddings; raw ones have no lower bound unless the head's output is unit.

    `eta` is the paper's lambda. SVMax's table 4 and its generative and counting networks use raw f; `unit: true` takes
    f^, whose s_mu is bounded, as in the paper from equation 2 on.
    """

    label = "SVMax (unbounded)"
    paper = "SVMax eq. 1"
    formula = r"-s_\mu,\quad s_\mu=\frac{1}{m}\sum_{k=1}^{m}\sigma_k(F),\quad m=\min(b,d)"
    added = ("unit",)

    def __init__(self, *, eta: Annotated[float, Ge(0)] = 1.0, unit: bool = False) -> None:
        super().__init__()
        self.eta, self.unit = eta, unit

    def forward(self, embeddings: Tensor) -> Tensor:
        return -mean_singular_value(unit(embeddings) if self.unit else embeddings)
