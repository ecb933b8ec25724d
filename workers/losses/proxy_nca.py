"""Proxy-NCA, with an image's own proxy in or out of the denominator."""

import math
from typing import Annotated, Literal

import torch
from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import unit


class ProxyNCA(nn.Module):
    """Mean over images of -log(e^{-scale D_y} / sum_z e^{-scale D_z}), D_z = ||f^ - p^_z||^2 to the proxy of class z.

    The paper's sum leaves out the image's own class y, so that the loss may become negative; with `positive` included
    it is a softmax, pytorch-metric-learning's form and MLRC's (scale 8 to 14). Scale 9 is the published code's 3 x 3
    of CUB and Cars (SOP: 8). `scale` on a squared distance is 2 x `scale` on a cosine: ISA's 12 on cosines is 6 here.
    """

    label = "Proxy-NCA"
    paper = "Movshovitz-Attias et al. 2017 (ISA table 1)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{-s\|\hat f_i-\hat p_{y_i}\|^2}}{\sum_{z\neq y_i}e^{-s\|\hat f_i-"
        r"\hat p_z\|^2}}"
    )
    order = "free"

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        scale: Annotated[float, Gt(0)] = 9.0,
        positive: Literal["excluded", "included"] = "excluded",
    ) -> None:
        if classes < 2:
            raise ValueError(f"proxy_nca: an image needs a proxy of another class, found {classes} class")
        super().__init__()
        self.scale = scale
        self.included = positive == "included"
        self.proxies = nn.Parameter(torch.randn(classes, dim) / 8)

    def class_vectors(self) -> Tensor:
        return self.proxies[:, None]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        # ||f^ - p^||^2 = 2 - 2 <f^, p^>, and the 2 cancels.
        logits = 2 * self.scale * unit(embeddings) @ unit(self.proxies).T
        own = logits.gather(1, labels[:, None])
        others = logits if self.included else logits.scatter(1, labels[:, None], -math.inf)
        return (others.logsumexp(dim=1) - own.squeeze(1)).mean()
