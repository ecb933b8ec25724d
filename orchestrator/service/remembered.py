"""A value that is costly to compute and may be some seconds old: whoever asks for it often gets the last one."""

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")

SHARE: Final = 20
"""What took long is computed again after so many times as long: asking cannot take more than a twentieth of a core."""


class Remembered(Generic[Value]):
    """Computed by one caller at a time; meanwhile the others get what there was. Safe to share between threads."""

    def __init__(
        self, compute: Callable[[], Value], seconds: float, share: float = SHARE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._compute, self._seconds, self._share, self._now = compute, seconds, share, now
        self._computing = threading.Lock()
        self._value: Value | None = None
        self._error: Exception | None = None
        self._until = float("-inf")
        self.computed = float("-inf")
        """When the value was computed, by the clock of `now`."""
        self.took = 0.0

    @property
    def age(self) -> float:
        """Seconds since the value was computed."""
        return self._now() - self.computed

    def get(self) -> Value:
        """The value, computed anew where that is due; raises what computing raised last."""
        if self._now() >= self._until and self._computing.acquire(blocking=self._value is None):
            try:
                if self._now() >= self._until:
                    self._renew()
            finally:
                self._computing.release()
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value

    def anew(self) -> Value:
        """The value computed after this call, for who has just changed it; raises what computing raises."""
        with self._computing:  # whoever computes now may have read what there was
            self._renew()
        return self.get()

    def _renew(self) -> None:
        began = self._now()
        try:
            self._value, self._error = self._compute(), None
        except Exception as error:
            self._error = error
        self.computed = self._now()
        self.took = self.computed - began
        self._until = self.computed + max(self._seconds, self._share * self.took)
