"""Tasks: what one step of a training is and what an evaluation of it is; one file a task."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch

from workers.data.images import Images


class Diverged(ArithmeticError):  # noqa: N818 - an outcome, not an error
    """A loss or an embedding is no longer finite; the training ends with this outcome."""


class Step(NamedTuple):
    """What one batch gives."""

    total: torch.Tensor
    """What is minimized, a scalar."""
    loss: torch.Tensor
    regularizer: torch.Tensor | None
    """Its value before it is weighted by eta; none where there is no regularizer."""
    embeddings: torch.Tensor
    """Raw, [b, dim]."""


class Task(Protocol):
    """What a part of the kind `task` offers."""

    def step(self, images: torch.Tensor, labels: torch.Tensor, eta: float | None) -> Step:
        """The value of a batch ([b, c, h, w] of 0 to 255, int64 [b]), to be differentiated.

        `eta` is the present weight of the regularizer; none where there is none.
        """
        ...

    def embed(self, images: Images) -> torch.Tensor:
        """The raw embeddings [n, dim] of a split; raises Diverged where they are not finite."""
        ...

    def evaluate(self, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split; raises Diverged where embeddings are not finite."""
        ...

    def judge(self, embeddings: torch.Tensor, images: Images, names: Sequence[str]) -> dict[str, float]:
        """The metrics `names` of a split with these embeddings, of this model or of several."""
        ...
