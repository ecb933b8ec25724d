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
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[float, Value]] = OrderedDict()  # with when it is too old
        self._computing: set[Key] = set()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key; who asks while another one computes it anew gets what there was."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None and (self._now() < known[0] or key in self._computing):
                return known[1]
            self._computing.add(key)
        try:
            began = self._now()
            value = compute()
            now = self._now()
            with self._lock:
                self._kept[key] = now + SHARE * (now - began), value
                self._kept.move_to_end(key)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
        finally:
            with self._lock:
                self._computing.discard(key)
        return value
