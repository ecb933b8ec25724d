"""How long somebody waits for an answer: work that may be long asks now and then, and stops where nobody does."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import Final, TypeVar

from orchestrator.views.errors import BusyError

Item = TypeVar("Item")


class GoneError(BusyError):
    """Who asked does not wait for the answer any more."""


ENDED: Final = BusyError
"""What says that nobody waits any more: passed on by those who carry on after other errors."""


class Deadline:
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


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def within(deadline: Deadline) -> Iterator[None]:
    """What is done within is done for this one."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Whether the work is still wanted; raises GoneError and BusyError. Outside of a request it always is."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def timely(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with a look after each whether they are still wanted."""
    for item in items:
        check()
        yield item
