"""What is dear to compute and changes all the time: however many ask, it is computed for a twentieth of a core."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

log = logging.getLogger(__name__)

LARGE: Final = 1_000
"""Trials of a sweep from which on what is computed of all of them is dear."""
SHARE: Final = 20
"""What was computed is new for so many times what that took; for as long again who asks gets it, and has it computed
beside: nobody waits for it but who asks for what nobody asked for in between."""
BESIDE: Final = 2
"""Values that are computed beside at once; who asks for a further one computes it."""


class Recent(Generic[Key, Value]):
    """Keeps the values that were computed last; safe to share between threads."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._changed = threading.Condition()
        self._kept: OrderedDict[Key, tuple[float, float, Value]] = OrderedDict()  # until when it is new, and given
        self._computing: set[Key] = set()
        self._room = threading.Semaphore(BESIDE)

    def get(self, key: Key, compute: Callable[[], Value], beside: Callable[[], Value] | None = None) -> Value:
        """The value of a key; who asks while another computes it gets what there was, or waits for the first.

        `beside` computes it where there is nobody who asks: in a thread and on a connection of its own.
        """
        with self._changed:
            while (known := self._kept.get(key)) is None and key in self._computing:
                self._changed.wait()
            now = self._now()
            if known is not None and (now < known[0] or key in self._computing):
                return known[2]
            self._computing.add(key)
        if known is not None and beside is not None and now < known[1] and self._begun_beside(key, beside):
            return known[2]
        return self._computed(key, compute)

    def _begun_beside(self, key: Key, compute: Callable[[], Value]) -> bool:
        """Whether there is a thread for it."""
        if not self._room.acquire(blocking=False):
            return False
        try:
            threading.Thread(target=self._beside, args=(key, compute), name="recent", daemon=True).start()
        except RuntimeError:  # as many threads as the system gives
            self._room.release()
            return False
        return True

    def _beside(self, key: Key, compute: Callable[[], Value]) -> None:
        try:
            self._computed(key, compute)
        except Exception as error:  # whoever asks next computes it, and is told what is wrong
            log.debug("%s was not computed beside: %s", key, error)
            with self._changed:
                self._kept.pop(key, None)
        finally:
            self._room.release()

    def _computed(self, key: Key, compute: Callable[[], Value]) -> Value:
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
            now = self._now()
            self._kept[key] = now + SHARE * took, now + 2 * SHARE * took, value
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
