"""What was computed of something that changes: kept with the stamp of its state, the most lately asked for."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

SHARE: Final = 20
"""What may be old is computed again after so many times what it took: a twentieth of a core, however many ask."""


class StampedCache(Generic[Key, Value]):
    """Keeps the values that were asked for last; safe to share between threads."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._lock = threading.Lock()
        self._until: dict[Key, float] = {}
        self._computing: set[Key] = set()
        self._kept: OrderedDict[Key, tuple[str, Value]] = OrderedDict()

    def get(self, key: Key, stamp: str, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed anew where its stamp is another; nobody waits for another's computing."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None and known[0] == stamp:
                self._kept.move_to_end(key)
                return known[1]
        value = compute()
        with self._lock:
            self._kept[key] = stamp, value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._until.pop(self._kept.popitem(last=False)[0], None)
        return value

    def recent(self, key: Key, stamp: Callable[[], str], compute: Callable[[], Value]) -> Value:
        """The same, of what changes all the time: it may be old, and who asks while another computes gets what was."""
        with self._lock:
            known = self._kept.get(key)
            if known is not None and (self._now() < self._until.get(key, 0.0) or key in self._computing):
                return known[1]
            self._computing.add(key)
        try:
            began = self._now()
            value = self.get(key, stamp(), compute)
            now = self._now()
            with self._lock:
                self._until[key] = now + SHARE * (now - began)
        finally:
            with self._lock:
                self._computing.discard(key)
        return value
