"""The scale of float16 gradients, and what becomes of an iteration whose loss or gradient is not finite."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from workers.tasks import Diverged

FLOOR: Final = 1.0
"""The least scale: below it a gradient of float16 would be made smaller than it is."""
LONGEST_RUN: Final = 16
"""Iterations in a row that may be left out; one more is a divergence.

As many halvings take torch's first scale, 65,536, to the floor."""


class LossScale:
    """torch's gradient scaler, which also leaves out an iteration whose loss is not finite; idle unless `enabled`.

    float16 overflows beyond 65,504, in a gradient as in the network on the way to the loss. Both halve the scale, and
    the iteration counts as done without a step. Of an overflow on the way nothing is left in the buffers of `modules`,
    such as the running mean of a batch norm, which no later batch would mend.
    """

    def __init__(self, device: torch.device, modules: Iterable[nn.Module], *, enabled: bool) -> None:
        self._scaler = torch.amp.GradScaler(device.type, enabled=enabled)
        self._modules = [*modules]
        self._kept: list[tuple[nn.Module, str, Tensor]] = []
        self._run = 0
        self.enabled = enabled

    def keep(self) -> None:
        """Note the buffers as they are before the network computes."""
        if self.enabled:
            owners = (part for module in self._modules for part in module.modules() if part.training)
            named = ((owner, name, value) for owner in owners for name, value in owner.named_buffers(recurse=False))
            self._kept = [(owner, name, value.clone()) for owner, name, value in named]

    def descend(self, total: Tensor, optimizer: torch.optim.Optimizer, clip: Callable[[], None]) -> None:
        """One step down the gradient of the finite scalar `total`, or none where the gradient is not finite.

        `clip` may change the gradients, for which it calls `unscale`. Raises Diverged after too long a run.
        """
        self._scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        clip()
        before = self._scaler.get_scale()
        self._scaler.step(optimizer)
        self._scaler.update()
        if self.enabled and self._scaler.get_scale() < before:
            self._left_out("gradient", self._scaler.get_scale())
        else:
            self._run = 0

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Give gradients their own size."""
        self._scaler.unscale_(optimizer)

    def skip(self) -> str:
        """Leave out an iteration whose loss is not finite; says so.

        Raises Diverged where nothing is scaled, and after too long a run.
        """
        if not self.enabled:
            raise Diverged("the loss is not finite")
        with torch.no_grad():
            for owner, name, value in self._kept:
                getattr(owner, name).copy_(value)
        scale = self._left_out("loss", self._scaler.get_scale() * self._scaler.get_backoff_factor())
        return f"the loss is not finite: no step, {self._run} in a row; gradients are scaled by {scale:g} from now on"

    def _left_out(self, what: str, scale: float) -> float:
        """Count an iteration without a step, and give the scale from now on."""
        self._run += 1
        if self._run > LONGEST_RUN:
            raise Diverged(f"the {what} is not finite, in the {self._run}th iteration in a row, in float16")
        scale = max(FLOOR, scale)
        self._scaler.load_state_dict({**self._scaler.state_dict(), "scale": scale, "_growth_tracker": 0})
        return scale

    def state_dict(self) -> dict[str, Any]:
        """What it needs to go on."""
        return {"scaler": self._scaler.state_dict(), "run": self._run}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self._scaler.load_state_dict(state["scaler"])
        self._run = state.get("run", 0)
