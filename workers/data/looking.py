"""A look at a data set: its files are found, listed and counted, and none of its photographs is decoded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Look:
    """What a look has met."""

    undecoded: bool = False
    """Whether photographs were met that nobody has decoded on this machine: their pixels are not known."""


_current: ContextVar[Look | None] = ContextVar("look", default=None)


@contextmanager
def looking() -> Iterator[Look]:
    """While it lasts `decoded` gives what was decoded before, else images of one pixel, so that counts are right."""
    look = Look()
    token = _current.set(look)
    try:
        yield look
    finally:
        _current.reset(token)


def current() -> Look | None:
    """The look that lasts; none: data sets are read to be trained on."""
    return _current.get()
