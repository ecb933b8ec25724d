"""Multi-similarity loss with its pair mining."""

from typing import Annotated, Final

import torch
from annotated_types import Ge, Gt
from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from pytorch_metric_learning.utils.loss_and_miner_utils import get_all_pairs_indices
from torch import Tensor, nn

from workers.geometry import unit

_COPY: Final = 1 - 1e-5  # the cosine from which on the authors' code takes an image for a copy of another


class MultiSimilarity(nn.Module):
    """Mean over anchors of log(1 + sum_p e^{-alpha(S_p - base)}) / alpha + log(1 + sum_n e^{beta(S_n - base)}) / beta.

    S is the cosine. Of an anchor's negatives those with S + epsilon above its least similar positive count, of its
    positives those with S - epsilon below its most similar negative. The defaults are those of the authors' code
    (beta 40, base 0.5), which SEC uses too; the paper prints beta 50 and base 1. As in that code positives with S of at
    least 1 - 1e-5 are left out, such as copies of an image that a small class is drawn with, and with its miner an
    anchor that has no others; `copies: true` keeps them, as pytorch-metric-learning does. `mined: false` counts all
    pairs: the loss without its miner, which MLRC and Proxy-ISA's table 2 tell apart.
    """

    label = "Multi-similarity"
    paper = "Wang et al. 2019 (SEC table 3)"
    formula = (
        r"\frac{1}{b}\sum_{i}\Bigl[\frac{1}{\alpha}\log\Bigl(1+\sum_{p}e^{-\alpha(S_{ip}-\lambda)}\Bigr)"
        r"+\frac{1}{\beta}\log\Bigl(1+\sum_{n}e^{\beta(S_{in}-\lambda)}\Bigr)\Bigr],"
        r"\quad S_{ij}=\langle\hat f_i,\hat f_j\rangle"
    )
    version = 2
    order = "free"

    def __init__(
        self,
        *,
        alpha: Annotated[float, Gt(0)] = 2.0,
        beta: Annotated[float, Gt(0)] = 40.0,
        base: float = 0.5,
        epsilon: Annotated[float, Ge(0)] = 0.1,
        mined: bool = True,
        copies: bool = False,
    ) -> None:
        super().__init__()
        self.loss = MultiSimilarityLoss(alpha=alpha, beta=beta, base=base)
        self.miner = MultiSimilarityMiner(epsilon=epsilon) if mined else None
        self.copies = copies

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        pairs = self.miner(directions, labels) if self.miner else get_all_pairs_indices(labels)
        loss: Tensor = self.loss(directions, labels, pairs if self.copies else self._without_copies(directions, pairs))
        return loss

    @torch.no_grad()
    def _without_copies(self, directions: Tensor, pairs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The positive pairs that are no copies, and the negative pairs of their anchors, or all if none are mined.

        Copies may be left out after mining: they are the most similar positives of an anchor, and mining depends on the
        least similar one.
        """
        anchor, positive, other, negative = pairs
        kept = (directions[anchor] * directions[positive]).sum(dim=1) < _COPY
        anchor, positive = anchor[kept], positive[kept]
        if self.miner is not None:
            has_positive = torch.zeros(len(directions), dtype=torch.bool, device=directions.device)
            has_positive[anchor] = True
            other, negative = other[has_positive[other]], negative[has_positive[other]]
        return anchor, positive, other, negative
