"""What a line of a log is about: the ids that stand beside it while something is done for a sweep or a request."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_ABOUT: Final[ContextVar[Mapping[str, int | str]]] = ContextVar("about", default={})  # noqa: B039 - never changed


@contextmanager
def about(**ids: int | str | None) -> Iterator[None]:
    """Have what is logged within carry these ids, such as `sweep` and `trial`, beside those around it."""
    known = {name: one for name, one in ids.items() if one is not None}
    token = _ABOUT.set({**_ABOUT.get(), **known})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def ids_of_now() -> Mapping[str, int | str]:
    """The ids of what is done now."""
    return _ABOUT.get()
