"""Multi-similarity loss with its pair mining."""

import math

from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from torch import Tensor, nn

from workers.geometry import unit


class MultiSimilarity(nn.Module):
    """Mean over anchors of log(1 + sum_p e^{-alpha(S_p - base)}) / alpha + log(1 + sum_n e^{beta(S_n - base)}) / beta.

    S is the cosine. Of an anchor's negatives those with S + epsilon above its least similar positive count, of its
    positives those with S - epsilon below its most similar negative. The defaults are those of the authors' code
    (beta 40, base 0.5), which SEC uses too; the paper prints beta 50 and base 1. The authors' code leaves out positives
    with S above 1 - 1e-5 (copies of an image), which here take part. `mined: false` counts all pairs: the loss without
    its miner, which MLRC and Proxy-ISA's table 2 tell apart.
    """

    label = "Multi-similarity"
    paper = "Wang et al. 2019 (SEC table 3)"
    version = 1
    order = "free"

    def __init__(
        self,
        *,
        alpha: float = 2.0,
        beta: float = 40.0,
        base: float = 0.5,
        epsilon: float = 0.1,
        mined: bool = True,
    ) -> None:
        for name, value in {"alpha": alpha, "beta": beta}.items():
            if not 0 < value < math.inf:
                raise ValueError(f"multi_similarity: {name} must be a finite number above 0, found {value!r}")
        if not math.isfinite(base):
            raise ValueError(f"multi_similarity: base must be a finite number, found {base!r}")
        if not 0 <= epsilon < math.inf:
            raise ValueError(f"multi_similarity: epsilon must be a finite number of at least 0, found {epsilon!r}")
        super().__init__()
        self.loss = MultiSimilarityLoss(alpha=alpha, beta=beta, base=base)
        self.miner = MultiSimilarityMiner(epsilon=epsilon) if mined else None

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b]."""
        directions = unit(embeddings)
        loss: Tensor = self.loss(directions, labels, self.miner(directions, labels) if self.miner else None)
        return loss
