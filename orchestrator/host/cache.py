"""A stale-while-revalidate cache: serves the cached value, and refreshes it in the background."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

log = logging.getLogger(__name__)

SHARE: Final = 20
"""How long a value stays fresh, as a multiple of the time of its computation, which so takes a twentieth of a core."""
_BACKGROUND: Final = 2  # most values that are refreshed in the background at the same time


@dataclass(frozen=True, slots=True)
class Cached(Generic[Value]):
    """A cached value with its age and cost."""

    value: Value
    stamp: object
    computed: float  # the time when it was computed
    took: float  # seconds


class Cache(Generic[Key, Value]):
    """Keeps the `most` values that were used last, computed by a function of the caller; thread-safe."""

    def __init__(
        self, most: int, seconds: float = 0.0, share: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._now = most, seconds, now
        self._share = SHARE if share is None else share
        self._changed = threading.Condition()
        self._kept: OrderedDict[Key, Cached[Value]] = OrderedDict()
        self._computing: set[Key] = set()
        self._room = threading.Semaphore(_BACKGROUND)

    def stamped(self, key: Key, stamp: object, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed again if its stamp has changed."""
        with self._changed:
            known = self._kept.get(key)
            if known is not None and known.stamp == stamp:
                self._kept.move_to_end(key)
                return known.value
        return self._compute(key, stamp, compute).value

    def get(self, key: Key, compute: Callable[[], Value], refresh: Callable[[], Value] | None = None) -> Value:
        """Return the value of a key, computed again when it is older than `seconds` and `share` times its cost.

        While one thread computes a value, other threads get the old value, or wait for the first one. For as long again
        the old value is returned while `refresh`, if given, computes a new one in a background thread.
        """
        return self.entry(key, compute, refresh).value

    def entry(
        self, key: Key, compute: Callable[[], Value], refresh: Callable[[], Value] | None = None
    ) -> Cached[Value]:
        """The same as `get`, with the age and the cost of the value."""
        with self._changed:
            while (known := self._kept.get(key)) is None and key in self._computing:
                self._changed.wait()
            if known is not None:
                self._kept.move_to_end(key)
                age, fresh = self._now() - known.computed, max(self._seconds, self._share * known.took)
                if age < fresh or key in self._computing:
                    return known
            self._computing.add(key)
        if known is not None and refresh is not None and age < 2 * fresh and self._in_background(key, refresh):
            return known
        return self._alone(key, compute)

    def _in_background(self, key: Key, compute: Callable[[], Value]) -> bool:
        """Start to compute a value in the background; False if there is no thread for it."""
        if not self._room.acquire(blocking=False):
            return False

        def refreshed() -> None:
            try:
                self._alone(key, compute)
            except Exception as error:  # the next caller computes it and gets the error
                log.debug("%s was not refreshed: %s", key, error)
                with self._changed:
                    self._kept.pop(key, None)
            finally:
                self._room.release()

        try:
            threading.Thread(target=refreshed, name="cache", daemon=True).start()
        except RuntimeError:  # the system has no more threads
            self._room.release()
            return False
        return True

    def _alone(self, key: Key, compute: Callable[[], Value]) -> Cached[Value]:
        try:
            return self._compute(key, None, compute)
        finally:
            with self._changed:
                self._computing.discard(key)
                self._changed.notify_all()

    def _compute(self, key: Key, stamp: object, compute: Callable[[], Value]) -> Cached[Value]:
        began = self._now()
        value = compute()
        now = self._now()
        entry = Cached(value, stamp, now, now - began)
        with self._changed:
            self._kept[key] = entry
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return entry
