"""A linear probe: linear classifiers on features that stay as they are, trained side by side."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

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
