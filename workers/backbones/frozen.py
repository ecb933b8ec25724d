"""A network that is never trained: its features are computed once per machine, and all trainings take them."""

from typing import Annotated

import torch
from torch import Tensor, nn

from workers.contract import Part
from workers.data.features import NetworkIdentity


class FrozenBackbone(nn.Module):
    """The features of the backbone `of`, which must have weights; heads, losses and regularizers train on them.

    The trainer computes the features of every image once, as an evaluation sees it (the centre), and uses them in place
    of images. Nothing of the backbone changes, also not its batch norm, and nothing can be augmented.
    """

    label = "Frozen features"
    flat = True
    reads = "features"

    def __init__(self, channels: int, network: NetworkIdentity, *, of: Annotated[Part, "backbone"]) -> None:
        super().__init__()
        self.of, self.origin = of, network.origin
        self.features = channels
        self._digest = network.digest

    def preprocess(self, rows: Tensor) -> Tensor:
        return rows

    def forward(self, rows: Tensor) -> Tensor:
        """Flattens features [b, features, 1, 1], which the trainer gives in place of images, to [b, features]."""
        return rows.flatten(1)

    def get_extra_state(self) -> Tensor:
        """The hash of the frozen network's weights, kept in checkpoints: trained heads fit only its features."""
        return torch.tensor([*bytes.fromhex(self._digest)], dtype=torch.uint8)

    def set_extra_state(self, state: object) -> None:
        """Raise ValueError if a checkpoint was trained on features of a network with other weights."""
        if not isinstance(state, Tensor) or not torch.equal(state.cpu(), self.get_extra_state()):
            raise ValueError(f"it was trained on features of {self.of.name} with other weights than are here now")
