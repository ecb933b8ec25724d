"""Tuplet loss: each positive pair against all negatives of its anchor."""

from typing import Annotated

from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import over_negatives, unit


class Tuplet(nn.Module):
    """Mean over ordered positive pairs of log(1 + sum_n exp(scale * (<f^_a, f^_n> - <f^_a, f^_p>))), n all negatives.

    SEC's equation to the letter, the `NTXentLoss` of pytorch-metric-learning at temperature 1 / scale, and the same as
    `normalized_npair` with `pairs: paper`.
    """

    label = "Tuplet"
    paper = "SEC eq. 3"
    formula = (
        r"\frac{1}{|P|}\sum_{(a,p)\in P}\log\Bigl(1+\sum_{n}e^{s(\langle\hat f_a,\hat f_n\rangle-\langle"
        r"\hat f_a,\hat f_p\rangle)}\Bigr)"
    )
    order = "free"

    def __init__(self, *, scale: Annotated[float, Gt(0)] = 25.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        logits = self.scale * directions @ directions.T
        return over_negatives(logits, logits, labels)
