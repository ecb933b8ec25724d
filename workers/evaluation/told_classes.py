"""What metrics read that tell the classes of images by features which no label has shaped."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

from workers.embeddings import geometry

_TEMPERATURE: Final = 0.07  # Wu et al., CVPR 2018
_VALUES: Final = 2**25  # cosines that are held at a time


class Classified(NamedTuple):
    """What a classifier says of images."""

    scores: Tensor
    """[n, classes]; the higher, the likelier."""
    labels: Tensor
    """int64 [n]."""

    def hits(self, k: int) -> Tensor:
        """Whether each image's class is among the k with the highest scores, float64 [n].

        Equal scores count as the expectation under random order; where one is not finite the image is told wrong.
        """
        own = self.scores.gather(1, self.labels[:, None])
        before, equal = (self.scores > own).sum(dim=1), (self.scores == own).sum(dim=1)
        share = ((k - before).double() / equal.clamp(min=1)).clamp(0, 1)
        return torch.where(self.scores.isfinite().all(dim=1), share, 0.0)


class Features(NamedTuple):
    """Features of images whose classes are to be told, and of others whose classes are known."""

    features: Tensor
    """[n, d]."""
    labels: Tensor
    known: Tensor
    """[m, d]."""
    known_labels: Tensor

    @property
    def queries(self) -> Tensor:
        """Which images are asked about: all, [n]."""
        return torch.arange(len(self.labels))

    def voted(self, k: int) -> Classified:
        """What the k nearest of the known ones say by the cosine, each with the weight e^(cosine / .07)."""
        classes = int(self.known_labels.max()) + 1
        known, count = geometry.unit(self.known), min(k, len(self.known))
        votes = []
        for part in torch.split(geometry.unit(self.features), max(1, _VALUES // len(known))):
            nearest = (part @ known.T).topk(count, dim=1)
            weight = ((nearest.values.double() - 1) / _TEMPERATURE).exp()
            empty = weight.new_zeros(len(part), classes)
            votes.append(empty.scatter_add_(1, self.known_labels[nearest.indices], weight))
        return Classified(torch.cat(votes), self.labels)
