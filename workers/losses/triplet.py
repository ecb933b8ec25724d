"""Triplet loss over all triplets of a batch."""

from typing import Annotated, Literal

from annotated_types import Ge
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer

from workers.losses._shared import OfDirections


class Triplet(OfDirections):
    """Mean of max(0, ||f^_a - f^_p||^2 - ||f^_a - f^_n||^2 + margin) over ALL triplets, also those without violation.

    Zero on a batch without triplets. SEC's setting is margin 1 on 40 classes of 3. `over: violating` is the mean over
    the triplets whose term is not 0: pytorch-metric-learning's default, which steepens as fewer triplets violate.
    """

    label = "Triplet"
    paper = "SEC eq. 2"
    formula = r"\frac{1}{|T|}\sum_{(a,p,n)\in T}\left[\|\hat f_a-\hat f_p\|^2-\|\hat f_a-\hat f_n\|^2+m\right]_+"
    order = "free"

    def __init__(self, *, margin: Annotated[float, Ge(0)] = 1.0, over: Literal["all", "violating"] = "all") -> None:
        super().__init__()
        # The library's own defaults are unsquared distances and the mean over violating triplets only.
        reducer = MeanReducer() if over == "all" else AvgNonZeroReducer()
        self.loss = TripletMarginLoss(
            margin=margin, distance=LpDistance(power=2), reducer=reducer, triplets_per_anchor="all"
        )
