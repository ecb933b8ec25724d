"""Normalized N-pair loss, one anchor and one positive per class."""

import math
from typing import Annotated

from annotated_types import Gt
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.losses import NPairsLoss
from torch import Tensor, nn

from workers.embeddings.geometry import unit


class NormalizedNPair(nn.Module):
    """Mean over classes of log(1 + sum_n exp(scale * (<f^_a, f^_n> - <f^_a, f^_p>))), in the form of SEC's code.

    The first image of a class is its anchor a, the second its positive p; the negatives n are the other classes'
    positives. Further images of a class have no part in the loss, nor has a class with a single image.
    """

    label = "Normalized N-pair"
    paper = "SEC eq. 3"
    formula = (
        r"\frac{1}{C}\sum_{c=1}^{C}\log\Bigl(1+\sum_{n}e^{s(\langle\hat f_a,\hat f_n\rangle-\langle\hat f_a,"
        r"\hat f_p\rangle)}\Bigr)"
    )
    version = 1
    order = "positional"
    layout = ("class_blocks",)

    def __init__(self, *, scale: Annotated[float, Gt(0)] = 25.0) -> None:
        super().__init__()
        self.stretch = math.sqrt(scale)  # on both factors of an inner product
        # The library's default distance would normalize again and so undo the scale.
        self.loss = NPairsLoss(distance=DotProductSimilarity(normalize_embeddings=False))

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b]."""
        loss: Tensor = self.loss(self.stretch * unit(embeddings), labels)
        return loss
