"""Normalized N-pair loss."""

import math
from typing import Annotated, Literal

from annotated_types import Gt
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.losses import NPairsLoss
from torch import Tensor, nn

from workers.geometry import over_negatives, unit


class NormalizedNPair(nn.Module):
    """Mean over pairs (a, p) of log(1 + sum_n exp(scale * (<f^_a, f^_n> - <f^_a, f^_p>))).

    `pairs: code` is the form of SEC's code: the first image of a class is its anchor a, the second its positive p; the
    negatives n are the other classes' positives. Further images of a class have no part in the loss, nor has a class
    with a single image. `pairs: paper` is SEC's equation 3, which its author response says is meant: every ordered
    positive pair against all negatives of its anchor, the same as `tuplet`.
    """

    label = "Normalized N-pair"
    paper = "SEC eq. 3"
    formula = (
        r"\frac{1}{|P|}\sum_{(a,p)\in P}\log\Bigl(1+\sum_{n}e^{s(\langle\hat f_a,\hat f_n\rangle-\langle\hat f_a,"
        r"\hat f_p\rangle)}\Bigr)"
    )
    order = "positional"
    layout = ("class_blocks",)
    added = ("pairs",)

    def __init__(self, *, scale: Annotated[float, Gt(0)] = 25.0, pairs: Literal["code", "paper"] = "code") -> None:
        super().__init__()
        self.scale, self.pairs = scale, pairs
        self.stretch = math.sqrt(scale)  # on both factors of an inner product
        # The library's default distance would normalize again and so undo the scale.
        self.loss = NPairsLoss(distance=DotProductSimilarity(normalize_embeddings=False))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        if self.pairs == "paper":
            logits = self.scale * directions @ directions.T
            return over_negatives(logits, logits, labels)
        loss: Tensor = self.loss(self.stretch * directions, labels)
        return loss
