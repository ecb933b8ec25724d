"""Errors that a client sees, each with where, what and what would be right; and the deadline of a request."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from workers.catalog import Problem


class MetricsweepError(Exception):
    """Any error of ours that is the reader's to act on."""


class InvalidSpecError(MetricsweepError):
    """A spec with problems; nothing of it was stored."""

    def __init__(self, problems: "Sequence[Problem]") -> None:
        self.problems = tuple(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"The spec has {len(self.problems)} {noun}.\n{lines}")


class InvalidImportError(InvalidSpecError):
    """A file of somebody else's numbers with problems, each with its line and column."""

    def __init__(self, name: str, problems: "Sequence[Problem]") -> None:
        super().__init__(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        self.args = (f"{name} has {len(self.problems)} {noun}.\n{lines}",)


class InvalidFilterError(MetricsweepError):
    """A filter, or a column to sort or show by, that says nothing: where, what was found and what would be right."""

    def __init__(self, message: str, at: int = 0, path: str = "where") -> None:
        self.message, self.at, self.path = message, at, path
        place = f"at character {at + 1}: " if path == "where" else ""
        self.said = f"{place}{message}"
        super().__init__(f"{'The filter' if path == 'where' else path}, {self.said}" if place else f"{path}: {message}")


class TooLargeError(MetricsweepError):
    """What was sent is over a stated limit."""


class NotFoundError(MetricsweepError):
    """No such sweep, trial or table."""


class NotAllowedError(MetricsweepError):
    """Whoever asks may see what is asked of, and not do this with it."""


class LoginRefusedError(MetricsweepError):
    """A provider's word on who somebody is lets nobody in, or not this person: `subject`, where that was proven."""

    def __init__(self, message: str, subject: str | None = None) -> None:
        self.subject = subject
        super().__init__(message)


class ConflictError(MetricsweepError):
    """What was asked does not fit the present state, or an idempotency key came with another body."""


class NumbersChangedError(ConflictError):
    """What was asked would mix numbers of older versions of parts or metrics with today's; `problems` names these."""

    def __init__(self, message: str, problems: "Sequence[Problem]") -> None:
        self.problems = tuple(problems)
        super().__init__(message)


class FencedError(MetricsweepError):
    """Another conductor holds the lease; this one must stop writing."""


class UnavailableError(MetricsweepError):
    """A service that is needed (database, Ray, MLflow) does not answer."""


class BusyError(UnavailableError):
    """The service has too much to do, or was asked for more than it does at once; later it may be otherwise."""


class DamagedError(MetricsweepError):
    """A bundle that is not what its manifest says, or none at all."""


FOR_ALL: Final = (FencedError, UnavailableError)
"""What concerns all that a conductor does; any other error is the trouble of the one thing that met it."""


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
