"""Whether a failed attempt is tried again, and when."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from orchestrator.views.runs import Failure, Order

INFRASTRUCTURE_TRIES: Final = 3
"""Attempts in a row that one training may lose without getting any further: then its recipe is what kills them."""
MOST_LOSSES: Final = 100
"""Attempts that it may lose in all, however far each one got."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds before the next attempt of a training that lost one; doubled with each loss in a row."""


@dataclass(slots=True)
class _Losses:
    """What one training has lost."""

    in_a_row: int = 0
    total: int = 0
    stalled: int = 0
    furthest: int = -1  # the step of the furthest checkpoint since the first loss
    not_before: float = 0.0


class Retries:
    """Losses are counted while a conductor lives: a new one begins anew, so that an outage does not use them up."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        # By the monotonic clock: when the wall clock is set back, nothing waits longer.
        self._now = now
        self._losses: dict[str, _Losses] = {}  # by training; of those that lost something and have not ended

    def after(self, order: Order, failure: Failure) -> bool:
        """Whether the order's training waits again: what a recipe raises is final, a stall has the user's limit.

        Data that were missing are waited for; where a look says that they are there, it is tried as after a loss.
        """
        if failure.kind in ("recipe", "damaged", "kept_weights"):
            self.ended(order)
            return False
        losses = self._losses.setdefault(order.training, _Losses())
        if failure.kind == "stalled":
            losses.stalled += 1
            again, count = losses.stalled <= order.slot.retries, losses.stalled
        else:
            losses.in_a_row += failure.begun  # one that never began says nothing of the recipe
            losses.total += 1
            again = losses.in_a_row < INFRASTRUCTURE_TRIES and losses.total < MOST_LOSSES
            count = max(1, losses.in_a_row)
        if again:
            losses.not_before = self._now() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (count - 1))
        else:
            self.ended(order)
        return again

    def advanced(self, order: Order, step: int) -> None:
        """A checkpoint of the training is complete: what it lost before was no fault of its recipe."""
        losses = self._losses.get(order.training)
        if losses is not None and step > losses.furthest:
            losses.furthest = step
            losses.in_a_row = 0

    def ended(self, order: Order) -> None:
        """The training is done; nothing of it is remembered."""
        self._losses.pop(order.training, None)

    def resting(self) -> frozenset[str]:
        """The trainings whose next attempt is still to wait."""
        now = self._now()
        return frozenset(training for training, losses in self._losses.items() if losses.not_before > now)

    def forget(self) -> None:
        """Count anew: somebody asked for a retry."""
        self._losses.clear()
