"""RMSprop as PyTorch computes it."""

from typing import Annotated, Any

import torch
from annotated_types import Ge, Lt


class RmsProp(torch.optim.RMSprop):
    """RMSprop; `weight_decay` is coupled: it adds to the gradient (L2). MLRC's setting is lr 1e-6 and momentum 0.9."""

    label = "RMSprop"
    paper = "MLRC"

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: Annotated[float, Ge(0)] = 1e-3,
        alpha: Annotated[float, Ge(0), Lt(1)] = 0.99,
        eps: Annotated[float, Ge(0)] = 1e-8,
        momentum: Annotated[float, Ge(0), Lt(1)] = 0.0,
        centered: bool = False,
        weight_decay: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__(
            groups, lr=lr, alpha=alpha, eps=eps, momentum=momentum, centered=centered, weight_decay=weight_decay
        )
