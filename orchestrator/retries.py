"""Whether a failed attempt is tried again, and when."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from orchestrator.trial import Failure, Order

INFRASTRUCTURE_TRIES: Final = 3
"""Attempts that one training may lose to its machine before it counts as failed: a poison recipe ends."""
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0
"""Seconds before the next attempt of a training that lost one; doubled with each loss."""


class Retries:
    """Losses are counted while a conductor lives: a new one begins anew, so that an outage does not use them up."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        # By the monotonic clock: when the wall clock is set back, nothing waits longer.
        self._now = now
        self._lost: Counter[str] = Counter()
        self._stalled: Counter[str] = Counter()
        self._not_before: dict[str, float] = {}

    def after(self, order: Order, failure: Failure) -> bool:
        """Whether the order's training waits again: what a recipe raises is final, a stall has the user's limit."""
        training = order.training
        if failure.kind == "recipe":
            return False
        if failure.kind == "stalled":
            self._stalled[training] += 1
            again, losses = self._stalled[training] <= order.slot.retries, self._stalled[training]
        else:
            self._lost[training] += 1
            again, losses = self._lost[training] < INFRASTRUCTURE_TRIES, self._lost[training]
        if again:
            self._not_before[training] = self._now() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (losses - 1))
        return again

    def resting(self) -> frozenset[str]:
        """The trainings whose next attempt is still to wait."""
        now = self._now()
        self._not_before = {training: when for training, when in self._not_before.items() if when > now}
        return frozenset(self._not_before)

    def forget(self) -> None:
        """Count anew: somebody asked for a retry."""
        self._lost.clear()
        self._stalled.clear()
        self._not_before.clear()
