"""What is dear to compute and changes all the time: however many ask, it is computed for a twentieth of a core."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LARGE: Final = 1_000
"""Trials of a sweep from which on what is computed of all of them is dear."""
SHARE: Final = 20
"""What was computed may be as old as so many times what that took."""


class Recent(Generic[Key, Value]):
    """Keeps the values that were computed last; safe to share between threads."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._changed = threading.Condition()
        self._kept: OrderedDict[Key, tuple[float, Value]] = OrderedDict()  # with when it is too old
        self._computing: set[Key] = set()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key; who asks while another computes it gets what there was, or waits for the first."""
        with self._changed:
            while (known := self._kept.get(key)) is None and key in self._computing:
                self._changed.wait()
            if known is not None and (self._now() < known[0] or key in self._computing):
                return known[1]
            self._computing.add(key)
        try:
            began = self._now()
            value = compute()
            self._keep(key, self._now() - began, value)
        finally:
            with self._changed:
                self._computing.discard(key)
                self._changed.notify_all()
        return value

    def _keep(self, key: Key, took: float, value: Value) -> None:
        with self._changed:
            self._kept[key] = self._now() + SHARE * took, value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
