"""Stochastic gradient descent as PyTorch computes it."""

from typing import Any

import torch


class Sgd(torch.optim.SGD):
    """Gradient descent with momentum; `weight_decay` is coupled: it adds to the gradient (L2)."""

    label = "SGD"
    version = 1

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float = 0.01,
        momentum: float = 0.9,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(groups, lr=lr, momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, fused=True)
