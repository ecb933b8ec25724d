"""Batch-hard triplet loss."""

from typing import Annotated

from annotated_types import Ge
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import MeanReducer
from torch import Tensor, nn

from workers.geometry import unit


class BatchHard(nn.Module):
    """Mean over anchors of max(0, margin + max_p ||f^_a - f^_p|| - min_n ||f^_a - f^_n||), the distances not squared.

    An image without another of its class, or without one of another class, is no anchor; the loss is 0 without anchors.
    The mean of pytorch-metric-learning is over anchors that violate the margin.
    SVMax's setting is margin 0.2 on 24 classes of 6.
    """

    label = "Batch-hard triplet"
    paper = "Hermans et al. 2017 (SVMax tables 1 and 2)"
    formula = r"\frac{1}{|A|}\sum_{a\in A}\Bigl[m+\max_{p}\|\hat f_a-\hat f_p\|-\min_{n}\|\hat f_a-\hat f_n\|\Bigr]_+"
    order = "free"

    def __init__(self, *, margin: Annotated[float, Ge(0)] = 0.2) -> None:
        super().__init__()
        # The library's own default is the mean over violating triplets only.
        self.loss = TripletMarginLoss(margin=margin, reducer=MeanReducer())
        self.miner = BatchHardMiner()

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        loss: Tensor = self.loss(directions, labels, self.miner(directions, labels))
        return loss
