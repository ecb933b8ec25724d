"""ProxyGML, several proxies per class of which an image sees the nearest."""

import math
from typing import Annotated

import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor, nn

from workers.geometry import unit


class ProxyGML(nn.Module):
    """Mean cross-entropy of z_c, the sum of an image's similarities to those proxies of class c that it keeps.

    An image keeps its own class's proxies and the most similar others, ceil(r * classes * proxies) in all; classes
    without a kept proxy have no part in its softmax. Where r * classes <= 1 that would be no other proxy and the loss
    constant, so that one other is always kept. To this comes lam times the same cross-entropy of the proxies among
    themselves, of all proxies. The authors train SOP with proxies=1, lam=0; their learning rate of the proxies is 300
    times the network's (SOP: 3,000).
    """

    label = "ProxyGML"
    paper = "Zhu et al. 2020 (ISA table 1)"
    formula = (
        r"-\frac{1}{b}\sum_{i}\log\frac{e^{z_{i,y_i}}}{\sum_{c}e^{z_{i,c}}}"
        r"-\frac{\lambda}{K}\sum_{k}\log\frac{e^{\sum_{j\in c(k)}\langle\hat p_k,\hat p_j\rangle}}"
        r"{\sum_{c}e^{\sum_{j\in c}\langle\hat p_k,\hat p_j\rangle}},"
        r"\quad z_{i,c}=\sum_{j\in c\cap K_i}\langle\hat f_i,\hat p_j\rangle"
    )
    order = "free"
    lr_scale = 300.0

    def __init__(
        self,
        dim: int,
        classes: int,
        *,
        proxies: Annotated[int, Ge(1)] = 12,
        r: Annotated[float, Gt(0), Le(1)] = 0.05,
        lam: Annotated[float, Ge(0)] = 0.3,
    ) -> None:
        super().__init__()
        self.lam = lam
        self.shape = (classes, proxies)
        self.kept = min(max(math.ceil(r * classes * proxies), proxies + 1), classes * proxies)
        self.proxies = nn.Parameter(torch.empty(classes * proxies, dim))  # class by class
        nn.init.kaiming_uniform_(self.proxies, a=math.sqrt(5), mode="fan_out")

    def class_vectors(self) -> Tensor:
        """The proxies of each class, [classes, proxies, dim]."""
        return self.proxies.view(*self.shape, -1)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        proxies = unit(self.proxies)
        cosines = unit(embeddings) @ proxies.T
        owner = torch.arange(self.shape[0], device=labels.device).repeat_interleave(self.shape[1])
        first = cosines.detach() + 3 * (labels[:, None] == owner)  # cosines are within 2 of one another
        kept = torch.zeros_like(cosines).scatter(1, first.topk(self.kept, dim=1).indices, 1.0)
        logits = self._by_class(cosines * kept).masked_fill(self._by_class(kept) == 0, -math.inf)
        loss: Tensor = torch.nn.functional.cross_entropy(logits, labels)
        if self.lam == 0:
            return loss
        among: Tensor = torch.nn.functional.cross_entropy(self._by_class(proxies @ proxies.T), owner)
        return loss + self.lam * among

    def _by_class(self, values: Tensor) -> Tensor:
        """Sums of [n, classes * proxies] over the proxies of each class."""
        return values.view(-1, *self.shape).sum(dim=2)
