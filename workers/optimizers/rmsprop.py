"""RMSprop as PyTorch computes it."""

from typing import Any

import torch


class RmsProp(torch.optim.RMSprop):
    """RMSprop; `weight_decay` is coupled: it adds to the gradient (L2). MLRC's setting is lr 1e-6 and momentum 0.9."""

    label = "RMSprop"
    paper = "MLRC"
    version = 1

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float = 1e-3,
        alpha: float = 0.99,
        eps: float = 1e-8,
        momentum: float = 0.0,
        centered: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            groups, lr=lr, alpha=alpha, eps=eps, momentum=momentum, centered=centered, weight_decay=weight_decay
        )
