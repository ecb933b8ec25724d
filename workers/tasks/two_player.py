"""Two players: a generator learns a mixture of Gaussians in the plane from a discriminator that learns to tell."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as entropy

from workers.data.batches import LabelledBatch
from workers.evaluation.measures import Measures
from workers.evaluation.samples import Samples
from workers.tasks import At, Diverged, Eta, Optimized, Task, Terms

RADIUS: Final = 2.0
DEVIATION: Final = 0.02
NOISE: Final = 256
"""Dimensions of what the generator makes its points from."""
WIDTH: Final = 128
"""Of the two hidden layers of either player."""
EVALUATED: Final = 2_500
"""Points of an evaluation."""


class TwoPlayer(Task):
    """A generator against a discriminator over Gaussians on a circle (SVMax figure 5); they move in turn.

    The regularizer sees what the generator makes, raw. The setting is the paper's but for batch and length.
    """

    label = "Two players"
    paper = "SVMax sec. 4.2, figure 5"
    version = 1
    metrics = ("modes", "high_quality")
    selects = "modes"
    split = "last"
    reads = "samples"
    watched = ("modes", "high_quality")
    curves = ("discriminator", "generator", "regularizer", "lr")

    def __init__(
        self,
        regularizer: nn.Module | None,
        eta: Eta | None,
        measures: Measures,
        device: torch.device,
        seed: int,
        *,
        gaussians: int = 8,
        batch: int = 512,
    ) -> None:
        turns = torch.arange(gaussians, device=device) * (2 * math.pi / gaussians)
        self._centres = RADIUS * torch.stack([turns.cos(), turns.sin()], dim=1)
        self._regularizer, self._eta, self._measures = regularizer, eta, measures
        self._batch = batch
        held = torch.randn(EVALUATED, NOISE, generator=torch.Generator().manual_seed(seed))
        self._held = held.to(device)  # the noise of all evaluations
        self.generator = _network(NOISE, 2).to(device)
        self.discriminator = _network(2, 1).to(device)

    def modules(self) -> Mapping[str, nn.Module]:
        """Both players."""
        both: dict[str, nn.Module] = {"generator": self.generator, "discriminator": self.discriminator}
        return both if self._regularizer is None else both | {"regularizer": self._regularizer}

    def optimized(self) -> Mapping[str, Optimized]:
        """Each player moves itself."""
        return {name: Optimized({name: one}) for name, one in self.modules().items() if name != "regularizer"}

    def step(self, batch: LabelledBatch | None, at: At) -> Iterator[Terms]:
        """The discriminator tells real from made; then the generator makes what it takes for real."""
        told = self.discriminator(self._real()), self.discriminator(self._made().detach())
        loss = entropy(told[0], torch.ones_like(told[0])) + entropy(told[1], torch.zeros_like(told[1]))
        yield Terms("discriminator", loss, lambda: {"discriminator": float(loss.detach()), "lr": at.rate})
        made = self._made()
        taken = self.discriminator(made)
        fooled = entropy(taken, torch.ones_like(taken))
        if self._regularizer is None or self._eta is None:
            yield Terms("generator", fooled, lambda: {"generator": float(fooled.detach())})
            return
        spread = self._regularizer(made)
        total = fooled + self._eta(at.step) * spread
        values = {"generator": fooled, "regularizer": spread}
        yield Terms("generator", total, lambda: {name: float(one.detach()) for name, one in values.items()})

    @torch.no_grad()
    def evaluate(self, split: str, names: Sequence[str]) -> Mapping[str, float]:
        """The metrics of what the generator makes of the same noise every time; raises Diverged."""
        points = self.generator(self._held)
        if not bool(points.isfinite().all()):
            raise Diverged("samples")
        return self._measures.of(Samples(points, self._centres, DEVIATION), names)

    def _real(self) -> Tensor:
        which = torch.randint(len(self._centres), (self._batch,), device=self._centres.device)
        return self._centres[which] + DEVIATION * torch.randn_like(self._centres[which])

    def _made(self) -> Tensor:
        made: Tensor = self.generator(torch.randn(self._batch, NOISE, device=self._centres.device))
        return made


def _network(inputs: int, outputs: int) -> nn.Module:
    hidden = [nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(WIDTH, outputs))
