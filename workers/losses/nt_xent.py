"""NT-Xent loss of SimCLR: the views of an image against the views of all others."""

from typing import Annotated

from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import over_negatives, unit


class NTXent(nn.Module):
    """Mean over ordered positive pairs of -log(e^{S_ap / T} / (e^{S_ap / T} + sum_n e^{S_an / T})), S the cosine.

    It is the `NTXentLoss` of pytorch-metric-learning. The two views of an image share a label, so that with N images
    there are 2N pairs and 2N - 2 negatives. With more than two images of a label each positive stands alone against the
    negatives. With a task that looks at one view of each image labels are those of classes, and a recipe that has this
    loss with `augment: simclr` is refused.
    """

    label = "NT-Xent"
    paper = "SimCLR (SEC table 5)"
    formula = (
        r"-\frac{1}{|P|}\sum_{(a,p)\in P}\log\frac{e^{S_{ap}/T}}{e^{S_{ap}/T}+\sum_{n}e^{S_{an}/T}},"
        r"\quad S_{ij}=\langle\hat f_i,\hat f_j\rangle"
    )
    order = "free"
    views = 2

    def __init__(self, *, temperature: Annotated[float, Gt(0)] = 0.5) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        logits = directions @ directions.T / self.temperature
        return over_negatives(logits, logits, labels)
