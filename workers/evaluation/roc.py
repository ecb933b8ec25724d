"""What thresholds on the cosine of pairs trade: how many of two classes they accept, and how many of one."""

from typing import NamedTuple

import torch
from torch import Tensor

from workers.evaluation.verification_pairs import Scores


class Roc(NamedTuple):
    """Every threshold that tells pairs apart, from one that accepts none of them to one that accepts all.

    A threshold accepts the pairs whose cosine reaches it; pairs of equal cosines are accepted together.
    """

    false: Tensor  # int64 [m], the pairs of two classes that each accepts, from 0 on
    true: Tensor  # int64 [m], the pairs of one class

    @classmethod
    def of(cls, scores: Scores) -> "Roc":
        """Of the cosines of pairs, of which at least one is of one class and one of two."""
        cosine, place = scores.cosine.cpu().sort(descending=True)
        same = scores.same.cpu()[place]
        last = torch.cat([cosine[1:] < cosine[:-1], torch.ones(1, dtype=torch.bool)])  # of those with its cosine
        none = torch.zeros(1, dtype=torch.int64)
        accepted = ((~same).cumsum(0), same.cumsum(0))
        return cls(*(torch.cat([none, counts[last]]) for counts in accepted))

    @property
    def far(self) -> Tensor:
        """The share of the pairs of two classes that each threshold accepts, float64 [m]."""
        return self.false.double() / self.false[-1]

    @property
    def tar(self) -> Tensor:
        """The share of the pairs of one class, float64 [m]."""
        return self.true.double() / self.true[-1]
