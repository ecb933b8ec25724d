"""A loss whose training lasts as long as a test needs it to, and costs next to no CPU."""

import time
from pathlib import Path

from torch import Tensor, nn

from workers.losses.triplet import Triplet


class Unhurried(nn.Module):
    """The triplet loss, after a wait that takes the place of a network's work."""

    label = "Unhurried"
    version = 1
    order = "free"

    def __init__(self, *, seconds: float = 0.02, held: str = "") -> None:
        super().__init__()
        self.seconds, self.held = seconds, held
        self.loss = Triplet()

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """The loss of raw embeddings [b, d] with labels [b]; while the file `held` is there, twice a second."""
        time.sleep(0.5 if self.held and Path(self.held).exists() else self.seconds)
        loss: Tensor = self.loss(embeddings, labels)
        return loss
