"""Representation counting: what is counted in an image is what is counted in its tiles, and not what is in another."""

from typing import Annotated

import torch
from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import firsts, norms, precise


class RepCnt(nn.Module):
    """Mean over images I of D(N(I), c) + [m - D(N(J), c)]_+, where c is the sum of N over the tiles of I.

    D is the squared distance, as in the original, whose technical details and m = 10 SVMax follows. Equation 18 of
    SVMax prints the plain distance, `squared: false`: with that one equation 19 has no minimum for a large lambda,
    since both its terms grow in proportion to the embeddings, and training lets them grow without end. J is every
    other image of the batch in turn, of which the mean is taken, where both papers draw one. Without `contrast` only
    the first term stays (equation 19). Of the two rows of a label the first is N(I), the second c, as the task
    `counting` has them.
    """

    label = "Rep-Cnt"
    paper = "Noroozi et al., ICCV 2017 (SVMax eq. 18)"
    formula = (
        r"\frac{1}{b}\sum_{I}\Bigl(D(N(I),c_I)+\frac{1}{b-1}\sum_{J\neq I}\left[m-D(N(J),c_I)\right]_+\Bigr),"
        r"\quad c_I=\sum_{j=1}^{4}N(T_jI),\quad D(u,v)=\|u-v\|^2"
    )
    version = 2
    order = "positional"
    layout = ("class_blocks",)
    tiles = True

    def __init__(self, *, margin: Annotated[float, Gt(0)] = 10.0, contrast: bool = True, squared: bool = True) -> None:
        super().__init__()
        self.margin, self.contrast, self.squared = margin, contrast, squared

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        embeddings = precise(embeddings)
        first, second = firsts(labels)
        whole, total = embeddings[first], embeddings[second]
        count = len(first)
        if not count:
            return embeddings.sum() * 0
        loss = self._distance(whole - total).mean()
        if not self.contrast or count < 2:
            return loss
        far = (self.margin - self._distance(whole[None] - total[:, None])).clamp(min=0)
        others = ~torch.eye(count, dtype=torch.bool, device=far.device)
        return loss + torch.where(others, far, 0.0).sum() / (count * (count - 1))

    def _distance(self, differences: Tensor) -> Tensor:
        if self.squared:
            return differences.square().sum(dim=-1)
        return norms(differences.flatten(0, -2)).view(differences.shape[:-1])
