"""What was computed of something that changes: kept with the stamp of its state, the most lately asked for."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class StampedCache(Generic[Key, Value]):
    """Keeps the values that were asked for last; safe to share between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
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
                self._kept.popitem(last=False)
        return value
