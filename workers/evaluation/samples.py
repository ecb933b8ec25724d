"""Samples of a generator beside the Gaussians that they shall follow: what metrics of `samples` read."""

from functools import cached_property

import torch
from torch import Tensor

_WITHIN = 3.0  # deviations


class Samples:
    """Points [n, 2] and the centres [k, 2] of Gaussians of one deviation."""

    def __init__(self, points: Tensor, centres: Tensor, deviation: float) -> None:
        self.points, self.centres, self.deviation = points.double().cpu(), centres.double().cpu(), deviation

    @cached_property
    def nearest(self) -> tuple[Tensor, Tensor]:
        """The distance [n] from each point to its nearest centre, and which that is [n]."""
        distance, centre = torch.cdist(self.points, self.centres).min(dim=1)
        return distance, centre

    @cached_property
    def good(self) -> Tensor:
        """Whether each point lies within three deviations of a centre, [n]."""
        return self.nearest[0] <= _WITHIN * self.deviation

    @cached_property
    def caught(self) -> int:
        """The centres with such a point."""
        return len(torch.unique(self.nearest[1][self.good]))

    @cached_property
    def shares(self) -> Tensor:
        """The share of the points that is nearest to each centre, [k]."""
        return torch.bincount(self.nearest[1], minlength=len(self.centres)).double() / len(self.points)
