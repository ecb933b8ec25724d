"""What a figure follows of a generator: where its samples lie from look to look."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workers.figures.arrays import Arrays
from workers.figures.options import FollowedSamples


class SampleLooks:
    """The samples that a generator makes of the same noise, from before the first iteration on (SVMax figure 5)."""

    def __init__(self, figure: FollowedSamples, total: int) -> None:
        self.file, self.points, self.every = figure.file, figure.points, figure.interval(total)
        self._steps: list[int] = []
        self._seen: list[Tensor] = []

    def note(self, step: int, samples: Tensor) -> None:
        """Take in the samples [n, 2] after `step` iterations."""
        self._steps.append(step)
        self._seen.append(samples.detach().float().cpu())

    def arrays(self, centres: Tensor, deviation: float) -> Arrays:
        """`xy` [w, n, 2] after the iterations `step` [w], beside n points of the mixture itself, `target` [n, 2].

        `centres` [k, 2] and `deviation` are the mixture's; its points are the same in all trainings.
        """
        rule, middles = torch.Generator().manual_seed(0), centres.float().cpu()
        drawn = middles[torch.randint(len(middles), (self.points,), generator=rule)]
        target = drawn + deviation * torch.randn(drawn.shape, generator=rule)
        return {
            "step": np.array(self._steps, dtype=np.int64), "xy": torch.stack(self._seen).numpy(),
            "target": target.numpy(), "centres": middles.numpy(), "deviation": np.array(deviation),
        }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold to go on."""
        return {"steps": [*self._steps], "seen": [*self._seen]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps, self._seen = list(state["steps"]), list(state["seen"])
