"""AdamW as PyTorch computes it."""

from typing import Any

import torch


class AdamW(torch.optim.AdamW):
    """Adam whose `weight_decay` is decoupled: it shrinks the weights by lr x weight_decay a step."""

    label = "AdamW"
    paper = "Loshchilov & Hutter 2019"
    version = 1

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        lr: float = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(groups, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, fused=True)
