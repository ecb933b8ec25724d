"""How long somebody waits for an answer: work that may be long asks now and then, and stops where nobody does."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import TypeVar

from orchestrator.errors import BusyError, MetricsweepError

Item = TypeVar("Item")


class GoneError(MetricsweepError):
    """Who asked does not wait for the answer any more."""


class Patience:
    """One answer that is waited for, up to so many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds
        self._gone = Event()

    def end(self) -> None:
        """Nobody waits any more; safe to call from another thread."""
        self._gone.set()

    def check(self) -> None:
        """Raise GoneError where nobody waits, BusyError where the time is over."""
        if self._gone.is_set():
            raise GoneError("the client has left")
        if time.monotonic() > self._until:
            raise BusyError(
                f"the answer takes more than {self.seconds:g} seconds of work; try again when less is asked"
            )


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def waiting(patience: Patience) -> Iterator[None]:
    """What is done within is done for this one."""
    token = _current.set(patience)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Whether the work is still wanted; raises GoneError and BusyError. Outside of a request it always is."""
    patience = _current.get()
    if patience is not None:
        patience.check()


def patiently(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with a look after each whether they are still wanted."""
    for item in items:
        check()
        yield item
