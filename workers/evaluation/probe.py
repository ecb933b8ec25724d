"""Linear probes: samples of frozen features, and a classifier trained on them."""

from collections.abc import Mapping
from functools import cached_property
from itertools import product
from typing import Any, Final, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workers import geometry

_WITHIN = 3.0  # deviations


class Samples:
    """Generated points [n, 2], and the centres [k, 2] of the Gaussians that they should follow."""

    def __init__(self, points: Tensor, centres: Tensor, deviation: float) -> None:
        self.points, self.centres, self.deviation = points.double().cpu(), centres.double().cpu(), deviation

    @cached_property
    def nearest(self) -> tuple[Tensor, Tensor]:
        """The distance [n] from each point to its nearest centre, and the index of that centre [n]."""
        distance, centre = torch.cdist(self.points, self.centres).min(dim=1)
        return distance, centre

    @cached_property
    def good(self) -> Tensor:
        """Whether each point is within three deviations of a centre, [n]."""
        return self.nearest[0] <= _WITHIN * self.deviation

    @cached_property
    def caught(self) -> int:
        """The number of centres with a point within three deviations."""
        return len(torch.unique(self.nearest[1][self.good]))

    @cached_property
    def shares(self) -> Tensor:
        """The share of the points that are nearest to each centre, [k]."""
        return torch.bincount(self.nearest[1], minlength=len(self.centres)).double() / len(self.points)


_TEMPERATURE: Final = 0.07  # Wu et al., CVPR 2018
_VALUES: Final = 2**25  # cosines that are held at a time


class Classified(NamedTuple):
    """The class scores that a classifier gives to images."""

    scores: Tensor  # [n, classes]; higher means more likely
    labels: Tensor

    def hits(self, k: int) -> Tensor:
        """Whether each image's class is among the k with the highest scores, float64 [n].

        Equal scores count by their expectation in random order; an image with a score that is not finite is wrong.
        """
        own = self.scores.gather(1, self.labels[:, None])
        before, equal = (self.scores > own).sum(dim=1), (self.scores == own).sum(dim=1)
        share = ((k - before).double() / equal.clamp(min=1)).clamp(0, 1)
        return torch.where(self.scores.isfinite().all(dim=1), share, 0.0)


class Features(NamedTuple):
    """Features of images to classify, and of known images with their classes."""

    features: Tensor
    labels: Tensor
    known: Tensor
    known_labels: Tensor

    @property
    def queries(self) -> Tensor:
        return torch.arange(len(self.labels))

    def voted(self, k: int) -> Classified:
        """The votes of the k nearest known images by the cosine, each with the weight e^(cosine / .07)."""
        classes = int(self.known_labels.max()) + 1
        known, count = geometry.unit(self.known), min(k, len(self.known))
        votes = []
        for part in torch.split(geometry.unit(self.features), max(1, _VALUES // len(known))):
            nearest = (part @ known.T).topk(count, dim=1)
            weight = ((nearest.values.double() - 1) / _TEMPERATURE).exp()
            empty = weight.new_zeros(len(part), classes)
            votes.append(empty.scatter_add_(1, self.known_labels[nearest.indices], weight))
        return Classified(torch.cat(votes), self.labels)


_MOMENTUM: Final = 0.9


class Schedule(NamedTuple):
    """The training schedule of linear probes: epochs, batch and learning rates."""

    rates: tuple[float, ...]  # the learning rates, with a classifier for each
    epochs: int
    batch: int
    at: tuple[int, ...] = ()  # the epochs after which rates are multiplied by `factor`
    factor: float = 0.2
    views: Literal["centre", "crops"] = "centre"
    """How a probe sees training images: as an evaluation does, or by SimCLR's random crops and flips in every epoch."""
    reports: Literal["chosen", "best"] = "chosen"
    """`chosen`: the rate that held-out images choose, after the last epoch; `best`: the best on test images."""


class Probe:
    """A softmax classifier for each layer's features and each rate, trained by SGD with momentum and no decay.

    They start at zero and see the same batches. None affects another.
    """

    def __init__(self, widths: Mapping[str, int], classes: int, schedule: Schedule, device: torch.device) -> None:
        self.schedule = schedule
        self.keys = [*product(widths, schedule.rates)]
        """Layer and rate of each classifier."""
        self._classifiers = nn.ModuleList(nn.Linear(widths[layer], classes) for layer, _ in self.keys).to(device)
        for parameter in self._classifiers.parameters():
            nn.init.zeros_(parameter)
        pairs = zip(self._classifiers, self.keys, strict=True)
        groups = [{"params": [*classifier.parameters()], "lr": rate} for classifier, (_, rate) in pairs]
        self._optimizer = torch.optim.SGD(groups, lr=1.0, momentum=_MOMENTUM)
        self.epoch = 0
        """The epochs that are done."""

    def learn(self, features: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        """One step of every classifier on the cross-entropy of a batch; returns their losses."""
        factor = self.schedule.factor ** sum(self.epoch >= epoch for epoch in self.schedule.at)
        for group, (_, rate) in zip(self._optimizer.param_groups, self.keys, strict=True):
            group["lr"] = rate * factor
        self._optimizer.zero_grad(set_to_none=True)
        losses = torch.stack([cross_entropy(scores, labels) for scores in self._scores(features)])
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return losses.detach()

    @torch.no_grad()
    def scores(self, features: Mapping[str, Tensor]) -> list[Tensor]:
        """The class scores of every classifier for images, [b, classes] each."""
        return self._scores(features)

    def _scores(self, features: Mapping[str, Tensor]) -> list[Tensor]:
        pairs = zip(self._classifiers, self.keys, strict=True)
        return [classifier(features[layer]) for classifier, (layer, _) in pairs]

    def state_dict(self) -> dict[str, Any]:
        states = {"classifiers": self._classifiers.state_dict(), "optimizer": self._optimizer.state_dict()}
        return {**states, "epoch": self.epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._classifiers.load_state_dict(state["classifiers"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]
