"""Adam as PyTorch computes it."""

from typing import Annotated, Any

import torch
from annotated_types import Ge, Lt


class Adam(torch.optim.Adam):
    """Adam; `weight_decay` is coupled: it adds to the gradient (L2)."""

    label = "Adam"
    paper = "Kingma & Ba 2015"

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: Annotated[float, Ge(0)] = 1e-3,
        beta1: Annotated[float, Ge(0), Lt(1)] = 0.9,
        beta2: Annotated[float, Ge(0), Lt(1)] = 0.999,
        eps: Annotated[float, Ge(0)] = 1e-8,
        weight_decay: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        super().__init__(groups, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, fused=True)
