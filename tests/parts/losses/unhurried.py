"""A loss whose training lasts as long as a test needs it to, and costs next to no CPU."""

import time

from torch import Tensor, nn

from workers.losses.triplet import Triplet


class Unhurried(nn.Module):
    """The triplet loss, after a wait that takes the place of a network's work."""

    label = "Unhurried"
    version = 1
    order = "free"

    def __init__(self, *, seconds: float = 0.02) -> None:
        super().__init__()
        self.seconds = seconds
        self.loss = Triplet()

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b]."""
        time.sleep(self.seconds)
        loss: Tensor = self.loss(embeddings, labels)
        return loss
