"""Errors that clients see, and the deadline of a request."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from workers.catalog import Problem


class MetricsweepError(Exception):
    """The base of all errors on which the reader can act."""


class InvalidSpecError(MetricsweepError):
    """A spec with problems, of which nothing was stored."""

    def __init__(self, problems: "Sequence[Problem]", name: str = "The spec") -> None:
        self.problems = tuple(problems)
        noun = "problem" if len(self.problems) == 1 else "problems"
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{name} has {len(self.problems)} {noun}.\n{lines}")


class InvalidImportError(InvalidSpecError):
    """An imported file of numbers with problems, each with its line and column."""


class InvalidFilterError(MetricsweepError):
    """A filter that cannot be read, or an unknown column to sort by or to show."""

    def __init__(self, message: str, at: int = 0, path: str = "where") -> None:
        self.message, self.at, self.path = message, at, path
        self.detail = f"at character {at + 1}: {message}" if path == "where" else message
        super().__init__(f"The filter, {self.detail}" if path == "where" else f"{path}: {message}")


class TooLargeError(MetricsweepError):
    """The request is over a documented limit."""


class NotFoundError(MetricsweepError):
    """There is no such sweep, trial or table."""


class NotAllowedError(MetricsweepError):
    """The caller may see an object, but not do this with it."""


class LoginRefusedError(MetricsweepError):
    """A login by a provider was refused; `subject` is the user's name there, if it was proven."""

    def __init__(self, message: str, subject: str | None = None) -> None:
        self.subject = subject
        super().__init__(message)


class ConflictError(MetricsweepError):
    """The request does not fit the present state, or its idempotency key was used with another body."""


class NumbersChangedError(ConflictError):
    """The request would mix numbers of older versions of parts or metrics with today's; `problems` names these."""

    def __init__(self, message: str, problems: "Sequence[Problem]") -> None:
        self.problems = tuple(problems)
        super().__init__(message)


class FencedError(MetricsweepError):
    """Another conductor holds the lease; this conductor must stop writing."""


class UnavailableError(MetricsweepError):
    """A required service (database, Ray, MLflow) does not answer."""


class BusyError(UnavailableError):
    """The service is overloaded, or the request takes too much work; a later request may succeed."""


class DamagedError(MetricsweepError):
    """A file is not a bundle, or differs from its manifest."""


FATAL: Final = (FencedError, UnavailableError)
"""Errors that affect all work of a conductor; other errors affect one sweep or trial."""


def reason(error: Exception) -> str:
    """The message of an error for users, with its type if it is not an error of ours."""
    return str(error) if isinstance(error, MetricsweepError) else f"{type(error).__name__}: {error}"


Item = TypeVar("Item")


class GoneError(BusyError):
    """The client has left and does not wait for the answer any more."""


class Deadline:
    """The time limit of a request, `seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds
        self._gone = Event()

    def end(self) -> None:
        """End the request, since its client has left; thread-safe."""
        self._gone.set()

    def check(self) -> None:
        """Raise GoneError if the client has left, and BusyError after the deadline."""
        if self._gone.is_set():
            raise GoneError("the client has left")
        if time.monotonic() > self._until:
            raise BusyError(
                f"the answer takes more than {self.seconds:g} seconds of work; try again when less is asked"
            )


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def within(deadline: Deadline) -> Iterator[None]:
    """Set the deadline of the request that this context works for."""
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raise GoneError or BusyError if the present request has ended; long work calls it often."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def timely(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, and check the deadline of the request before each."""
    for item in items:
        check()
        yield item
