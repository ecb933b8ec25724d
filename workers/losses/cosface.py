"""CosFace, the softmax with a margin on the cosine."""

from pytorch_metric_learning.losses import CosFaceLoss
from torch import Tensor, nn

from workers.geometry import unit
from workers.losses._ranges import above_zero, at_least_zero


class CosFace(nn.Module):
    """Mean cross-entropy of scale * cos(theta_c), but scale * (cos(theta_y) - margin) for an image's own class y."""

    label = "CosFace"
    paper = "Wang et al. 2018 (SEC eq. 19)"
    version = 1
    order = "free"

    def __init__(self, dim: int, classes: int, *, margin: float = 0.35, scale: float = 64.0) -> None:
        at_least_zero("cosface", margin=margin)
        above_zero("cosface", scale=scale)
        super().__init__()
        self.loss = CosFaceLoss(classes, dim, margin=margin, scale=scale)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b] from 0 to classes - 1."""
        loss: Tensor = self.loss(unit(embeddings), labels)
        return loss
