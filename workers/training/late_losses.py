"""Whether losses were finite, learned of a GPU some iterations later, so that no iteration waits for one."""

from collections import deque
from typing import Final, NamedTuple

import torch

_LATE: Final = 8


def lateness(device: torch.device) -> int:
    """The iterations that a training may be ahead of what it knows of its losses: none where it computes itself."""
    return _LATE if device.type == "cuda" else 0


class _Told(NamedTuple):
    """What a GPU tells of the loss after `step` iterations, once it is at `event`."""

    step: int
    finite: torch.Tensor
    event: torch.cuda.Event | None


class LateLosses:
    """The losses of iterations, of which the first that is not finite is a divergence, whenever that is known."""

    def __init__(self) -> None:
        self._told: deque[_Told] = deque()

    def note(self, step: int, total: torch.Tensor) -> None:
        """Take a loss of the iteration that comes after `step` of them."""
        finite, event = total.detach().isfinite(), None
        if finite.is_cuda:
            pinned = torch.empty(finite.shape, dtype=torch.bool, pin_memory=True)
            finite = pinned.copy_(finite, non_blocking=True)
            event = torch.cuda.current_stream(total.device).record_event()
        self._told.append(_Told(step, finite, event))

    def diverged(self, step: int) -> int | None:
        """The iterations before the first loss that is not finite: none of those after at most `step` of them.

        It waits for what is not known of these yet, and for nothing else.
        """
        while self._told and self._told[0].step <= step:
            told = self._told.popleft()
            if told.event is not None:
                told.event.synchronize()
            if not bool(told.finite):
                return told.step
        return None
