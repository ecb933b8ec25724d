"""ArcFace, the softmax with a margin on the angle."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Lt
from torch import Tensor, nn

from workers.geometry import unit

_ALIGNED = 1 - 1e-7  # the arc cosine has no gradient at 1, where a rounded cosine may lie


class ArcFace(nn.Module):
    """Mean cross-entropy of scale * cos(theta_c), but scale * cos(theta_y + margin) for an image's own class y.

    The margin is in radians. Beyond theta_y = pi - margin the target is cos(theta_y) - margin * sin(margin), which goes
    on falling. Written here and not taken from pytorch-metric-learning, whose gradient is NaN where an embedding
    coincides with its class's vector. Class vectors start at normal(0, init_std) as in InsightFace; large ones hardly
    turn under SGD. The library's, and so MLRC's, start at 1.
    """

    label = "ArcFace"
    paper = "Deng et al. 2019 (SEC table 4)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{s\cos(\theta_{y_i}+m)}}{e^{s\cos(\theta_{y_i}+m)}"
        r"+\sum_{c\neq y_i}e^{s\cos\theta_c}},\quad\cos\theta_c=\langle\hat w_c,\hat f_i\rangle"
    )
    version = 2
    order = "free"

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        margin: Annotated[float, Ge(0), Lt(math.pi)] = 0.45,
        scale: Annotated[float, Gt(0)] = 64.0,
        init_std: Annotated[float, Gt(0)] = 0.01,
    ) -> None:
        super().__init__()
        self.margin, self.scale = margin, scale
        self.weight = nn.Parameter(init_std * torch.randn(classes, dim))

    def class_vectors(self) -> Tensor:
        return self.weight[:, None]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosines = unit(embeddings) @ unit(self.weight).T
        own = cosines.gather(1, labels[:, None])
        angle = own.clamp(-_ALIGNED, _ALIGNED).acos()
        beyond = own - self.margin * math.sin(self.margin)
        target = torch.where(angle <= math.pi - self.margin, (angle + self.margin).cos(), beyond)
        logits = self.scale * cosines.scatter(1, labels[:, None], target)
        loss: Tensor = torch.nn.functional.cross_entropy(logits, labels)
        return loss
