"""N-pair loss, one anchor and one positive per class."""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Ge
from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.losses import NPairsLoss
from pytorch_metric_learning.regularizers import LpRegularizer
from torch import Tensor, nn

from workers.geometry import firsts, negatives_among, precise, unit


class NPair(nn.Module):
    """Mean over classes of log(1 + sum_n exp(<f_a, f_n> - <f_a, f_p>)) + l2 / 4 * (mean ||f_a||^2 + mean ||f_p||^2).

    The first image of a class is its anchor a, the second its positive p; the negatives n are the other classes'
    positives. `unit` takes f^ for f, without any scale, and the second term is then constant: SVMax's tables 1 and 2;
    on raw f it is the loss of table 4. With more than two images of a class that term averages over all of them.
    `pairs: code` is the form of the authors' code; with `paper` the negatives are the other classes' anchors too, the
    b - 2 of SVMax's appendix A.1. The `NPairsLoss` of pytorch-metric-learning is this loss of f^, with `pairs: code`.
    """

    label = "N-pair"
    paper = "Sohn 2016 (SVMax eq. 7)"
    formula = (
        r"\frac{1}{C}\sum_{c=1}^{C}\log\Bigl(1+\sum_{n}e^{\langle\hat f_a,\hat f_n\rangle-\langle\hat f_a,"
        r"\hat f_p\rangle}\Bigr)"
        r"+\frac{\ell_2}{4C}\sum_{c=1}^{C}\left(\|\hat f_a\|^2+\|\hat f_p\|^2\right)"
    )
    order = "positional"
    layout = ("class_blocks",)
    added = ("pairs",)

    def __init__(
        self, *, unit: bool = True, l2: Annotated[float, Ge(0)] = 0.002, pairs: Literal["code", "paper"] = "code"
    ) -> None:
        super().__init__()
        self.unit, self.l2, self.pairs = unit, l2, pairs
        # The library's term is the mean over anchors and positives together: half the sum of the two means.
        self.loss = NPairsLoss(
            distance=DotProductSimilarity(normalize_embeddings=False),
            embedding_regularizer=LpRegularizer(power=2),
            embedding_reg_weight=l2 / 2,
        )

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        values = unit(embeddings) if self.unit else precise(embeddings)
        if self.pairs == "code":
            loss: Tensor = self.loss(values, labels)
            return loss
        penalty = self.l2 / 2 * values.square().sum(dim=1).mean()
        anchors, positives = firsts(labels)
        if not len(anchors):
            return penalty
        negative = negatives_among(labels, torch.cat([anchors, positives]))[anchors]
        own = (values[anchors] * values[positives]).sum(dim=1, keepdim=True)
        crowd = (values[anchors] @ values.T - own).masked_fill(~negative, -math.inf).logsumexp(dim=1)
        return torch.logaddexp(crowd, torch.zeros_like(crowd)).mean() + penalty
