"""A stream of random numbers that belongs to one part of a training."""

from typing import cast

import torch
from torch import Tensor, nn


class RandomState(nn.Module):
    """Random numbers apart from the trainer's, so that a part which draws leaves the batches of all others as they are.

    The stream is seeded from torch's at construction, and so from the recipe; it moves on in training mode only, and is
    part of the checkpoint. It is the same on every device.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))

    def uniform(self, *shape: int, like: Tensor) -> Tensor:
        """Numbers from [0, 1), of the given shape and on the device of `like`, in float32."""
        state = self.generator.get_state()
        drawn = torch.rand(*shape, generator=self.generator)
        if not self.training:
            self.generator.set_state(state)
        return drawn.to(like.device)

    def get_extra_state(self) -> Tensor:
        """The place in the stream, for the checkpoint."""
        return self.generator.get_state()

    def set_extra_state(self, state: object) -> None:
        """Go on where the state was taken."""
        self.generator.set_state(cast(Tensor, state).cpu())
