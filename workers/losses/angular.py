"""Angular loss."""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Gt, Lt
from torch import Tensor, nn

from workers.geometry import firsts, masks, negatives_among, unit


class Angular(nn.Module):
    """Mean over pairs (a, p) of log(1 + sum_n exp(4 t (f^_a + f^_p) f^_n - 2 (1 + t) f^_a f^_p)), t = tan^2(alpha).

    `pairs: code` is the form of the tables: a class's first image is its anchor and the second its positive, the
    negatives are the other classes' positives; with `paper` their anchors too, the b - 2 of SVMax's appendix A.1. `all`
    takes every ordered positive pair and all negatives, as pytorch-metric-learning does. `alpha` is in degrees. The
    authors' code adds an L2 term, which is constant here, since f^ has norm 1, and is left out.
    """

    label = "Angular"
    paper = "Wang et al. 2017 (SVMax tables 1 and 2)"
    formula = (
        r"\frac{1}{|P|}\sum_{(a,p)\in P}\log\Bigl(1+\sum_{n}e^{4\tan^2\!\alpha\,(\hat f_a+\hat f_p)^{\top}"
        r"\hat f_n"
        r"-2(1+\tan^2\!\alpha)\,\hat f_a^{\top}\hat f_p}\Bigr)"
    )
    order = "positional"
    layout = ("class_blocks",)

    def __init__(
        self, *, alpha: Annotated[float, Gt(0), Lt(90)] = 45.0, pairs: Literal["code", "paper", "all"] = "code"
    ) -> None:
        super().__init__()
        self.slope = math.tan(math.radians(alpha)) ** 2
        self.pairs = pairs

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        cosine = directions @ directions.T
        if self.pairs == "all":
            positive, negative = masks(labels)
            anchors, positives = positive.nonzero().unbind(dim=1)
        else:
            anchors, positives = firsts(labels)
            negative = negatives_among(labels, positives if self.pairs == "code" else torch.cat([anchors, positives]))
        if not len(anchors):
            return cosine.sum() * 0
        own = cosine[anchors, positives][:, None]
        forces = 4 * self.slope * (cosine[anchors] + cosine[positives]) - 2 * (1 + self.slope) * own
        crowd = forces.masked_fill(~negative[anchors], -math.inf).logsumexp(dim=1)
        return torch.logaddexp(crowd, torch.zeros_like(crowd)).mean()
