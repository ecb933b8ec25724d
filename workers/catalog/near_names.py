"""The name that was probably meant by a wrong one, and how much may be compared to find such."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Final

_NEAR: Final = 0.6  # of the characters that two names have in common, as difflib counts them
_LONGEST: Final = 100  # characters of a name that is compared
_MANY: Final = 500  # names among which one is looked for

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def comparing(most: int) -> Iterator[None]:
    """Within, compare so many pairs of characters at the most; after that nothing is near any more."""
    token = _left.set([most])
    try:
        yield
    finally:
        _left.reset(token)


def near(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant, in whichever case it was written; none where nothing is near."""
    if len(name) > _LONGEST:
        return None
    try:
        return _nearest(name.casefold(), tuple(islice(known, _MANY)))
    except _ExhaustedError:
        return None


class _ExhaustedError(Exception):
    """What may be compared was compared; what was not found so is nothing to remember."""


@lru_cache(maxsize=1024)
def _nearest(folded: str, names: tuple[str, ...]) -> str | None:
    """Looked for once, since the same mistake stands in all recipes of a sweep."""
    matcher = SequenceMatcher(None, "", folded)
    nearest: tuple[float, str] | None = None
    for name in names:
        _spend(len(name) + len(folded))
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() < _NEAR or matcher.quick_ratio() < _NEAR:
            continue
        _spend(len(name) * len(folded))
        if (ratio := matcher.ratio()) >= _NEAR:
            nearest = max(nearest or (0.0, ""), (ratio, name))
    return nearest[1] if nearest else None


def _spend(pairs: int) -> None:
    left = _left.get()
    if left is not None:
        left[0] -= pairs
        if left[0] < 0:
            raise _ExhaustedError
