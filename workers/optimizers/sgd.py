"""Stochastic gradient descent as PyTorch computes it."""

from typing import Annotated, Any

import torch
from annotated_types import Ge, Lt


class Sgd(torch.optim.SGD):
    """Gradient descent with momentum; `weight_decay` is coupled: it adds to the gradient (L2)."""

    label = "SGD"

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: Annotated[float, Ge(0)] = 0.01,
        momentum: Annotated[float, Ge(0), Lt(1)] = 0.9,
        nesterov: bool = False,
        weight_decay: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__(
            groups, lr=lr, momentum=momentum, nesterov=nesterov and momentum > 0, weight_decay=weight_decay, fused=True
        )
