"""Linear probes: samples of frozen features, and a classifier trained on them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from workers import geometry

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


MOMENTUM: Final = 0.9


class Schedule(NamedTuple):
    """How classifiers are trained."""

    rates: tuple[float, ...]
    """The learning rates: of each there is a classifier."""
    epochs: int
    batch: int
    at: tuple[int, ...] = ()
    """The epochs after which a rate falls."""
    factor: float = 0.2
    """What it is multiplied by there."""

    def fault(self) -> str | None:
        """What is wrong with it; none where nothing is."""
        if not self.rates:
            return "expected at least one learning rate, found none"
        if any(not 0 < one < self.epochs for one in self.at):
            return f"the rate is to fall after epochs {[*self.at]}, and there are {self.epochs}"
        return None


class Probe:
    """A softmax classifier of each layer's features with each rate, by SGD with momentum and no decay.

    They start at zero and see the same batches; none feels another, so that each is what it would be alone.
    """

    def __init__(self, widths: Mapping[str, int], classes: int, schedule: Schedule, device: torch.device) -> None:
        self.schedule = schedule
        self.keys = [*product(widths, schedule.rates)]
        """Layer and rate of each classifier."""
        self._classifiers = nn.ModuleList(nn.Linear(widths[layer], classes) for layer, _ in self.keys).to(device)
        for parameter in self._classifiers.parameters():
            nn.init.zeros_(parameter)
        groups = [{"params": [*one.parameters()], "lr": rate} for one, (_, rate) in self._paired()]
        self._optimizer = torch.optim.SGD(groups, lr=1.0, momentum=MOMENTUM)
        self.epoch = 0
        """The epochs that are done."""

    def learn(self, features: Mapping[str, Tensor], labels: Tensor) -> Tensor:
        """One step of every classifier down the cross-entropy of a batch; gives its values, one a classifier."""
        factor = self.schedule.factor ** sum(self.epoch >= one for one in self.schedule.at)
        for group, (_, rate) in zip(self._optimizer.param_groups, self.keys, strict=True):
            group["lr"] = rate * factor
        self._optimizer.zero_grad(set_to_none=True)
        losses = torch.stack([cross_entropy(one, labels) for one in self._said(features)])
        losses.sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        return losses.detach()

    @torch.no_grad()
    def scores(self, features: Mapping[str, Tensor]) -> list[Tensor]:
        """What every classifier says of images, [b, classes] each."""
        return self._said(features)

    def _said(self, features: Mapping[str, Tensor]) -> list[Tensor]:
        return [one(features[layer]) for one, (layer, _) in self._paired()]

    def _paired(self) -> Sequence[tuple[nn.Module, tuple[str, float]]]:
        return [*zip(self._classifiers, self.keys, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """What it needs to go on."""
        states = {"classifiers": self._classifiers.state_dict(), "optimizer": self._optimizer.state_dict()}
        return {**states, "epoch": self.epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self._classifiers.load_state_dict(state["classifiers"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]
