"""Contrastive loss over a few pairs of each two classes."""

from typing import Annotated, Final, Literal

import torch
from annotated_types import Gt
from torch import Tensor, nn

from workers.geometry import norms, places, unit

_SEATS: Final = 4  # images of a class that sit together: seats 0 to 3 are one class's, 4 to 7 the next one's

_PAIRS: Final = {
    "code": ((0, 1), (6, 7), (4, 3), (2, 5)),
    "paper": ((0, 1), (2, 3), (4, 5), (6, 7), (0, 4), (1, 5), (2, 6), (3, 7)),
}
"""Which seats form pairs."""


class Contrastive(nn.Module):
    """Mean over pairs of D^2 where the classes are equal, max(0, margin - D)^2 where not, D = ||f^_i - f^_j||.

    Classes stand together two by two, with four images each. `pairs: code` is that of SVMax's code: of every eight
    images, one positive pair of each class and two negative pairs, disjoint (36 and 36 of a batch of 144). `paper` has
    as many as its text says (72 and 72): two positive pairs of each class, each image in one negative pair. `squared:
    false` is SVMax's equation. More images of a class are taken four by four; where some are missing, or the second
    class is, so are their pairs; a recipe whose `per_class` of the sampler is no multiple of 4 is refused.
    The `ContrastiveLoss` of pytorch-metric-learning takes every pair and does not square.
    """

    label = "Contrastive"
    paper = "SVMax eq. 6"
    formula = (
        r"\frac{1}{|P|}\sum_{(i,j)\in P}\begin{cases}D_{ij}^2&y_i=y_j\\\left[m-D_{ij}\right]_+^2&y_i\neq y_j"
        r"\end{cases},"
        r"\quad D_{ij}=\|\hat f_i-\hat f_j\|"
    )
    order = "paired"
    layout = ("class_blocks",)
    per_class_multiple = 4

    def __init__(
        self, *, margin: Annotated[float, Gt(0)] = 1.0, squared: bool = True, pairs: Literal["code", "paper"] = "code"
    ) -> None:
        super().__init__()
        self.margin, self.squared = margin, squared
        self.register_buffer("seats", torch.tensor(_PAIRS[pairs]), persistent=False)

    seats: Tensor

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        directions = unit(embeddings)
        first, other = self._pairs(labels)
        if not len(first):
            return directions.sum() * 0
        difference = directions[first] - directions[other]
        # The code's distance is never 0; SVMax's equation has no such constant.
        distance = (difference.square().sum(dim=1) + 1e-5).sqrt() if self.squared else norms(difference)
        terms = torch.where(labels[first] == labels[other], distance, (self.margin - distance).relu())
        return (terms.square() if self.squared else terms).mean()

    def _pairs(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        place = places(labels)
        first = (labels[:, None] == labels[None, :]).int().argmax(dim=1)
        number = (place == 0).cumsum(dim=0)[first] - 1  # of the image's class, in the order of appearance
        fours = int(place.max()) // _SEATS + 1
        group = number // 2 * fours + place // _SEATS
        table = labels.new_full((int(group.max()) + 1, 2 * _SEATS), -1)
        table[group, number % 2 * _SEATS + place % _SEATS] = torch.arange(len(labels), device=labels.device)
        pairs = table[:, self.seats].flatten(0, 1)
        first, other = pairs[(pairs >= 0).all(dim=1)].unbind(dim=1)
        return first, other
