"""N-pair loss, one anchor and one positive per class."""

from pytorch_metric_learning.distances import DotProductSimilarity
from pytorch_metric_learning.losses import NPairsLoss
from pytorch_metric_learning.regularizers import LpRegularizer
from torch import Tensor, nn

from workers.geometry import precise, unit
from workers.losses._ranges import at_least_zero


class NPair(nn.Module):
    """Mean over classes of log(1 + sum_n exp(<f_a, f_n> - <f_a, f_p>)) + l2 / 4 * (mean ||f_a||^2 + mean ||f_p||^2).

    The first image of a class is its anchor a, the second its positive p; the negatives n are the other classes'
    positives. `unit` takes f^ for f, without any scale, and the second term is then constant: SVMax's tables 1 and 2;
    on raw f it is the loss of table 4. With more than two images of a class that term averages over all of them.
    """

    label = "N-pair"
    paper = "Sohn 2016 (SVMax eq. 7)"
    version = 1
    order = "positional"
    layout = ("class_blocks",)

    def __init__(self, *, unit: bool = True, l2: float = 0.002) -> None:
        at_least_zero("npair", l2=l2)
        super().__init__()
        self.unit = unit
        # The library's term is the mean over anchors and positives together: half the sum of the two means.
        self.loss = NPairsLoss(
            distance=DotProductSimilarity(normalize_embeddings=False),
            embedding_regularizer=LpRegularizer(power=2),
            embedding_reg_weight=l2 / 2,
        )

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b]."""
        loss: Tensor = self.loss(unit(embeddings) if self.unit else precise(embeddings), labels)
        return loss
