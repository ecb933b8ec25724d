"""How much work the check of one spec may take: counted in steps, not in seconds, so that it is the same everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from orchestrator.views import deadline
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem, comparing

MOST_STEPS: Final = 1_500_000
"""Groups and alternatives that are looked at while combinations are counted and checked."""
MOST_COMPARED: Final = 1_000_000
"""Pairs of characters that are compared to find near misses; after that nothing is suggested any more."""

_TOO_MUCH: Final = (
    "the spec takes too long to check: its groups with `when`, its rules or its tables stand for too many "
    "combinations; write fewer of them, or divide the sweep"
)
_LOOK: Final = 1 << 12  # steps after which somebody asks whether the answer is still wanted


@dataclass
class Effort:
    """What the check of one spec has taken."""

    steps: int = 0


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited() -> Iterator[Effort]:
    """Count what is done within, up to the limits."""
    effort = Effort()
    token = _current.set(effort)
    try:
        with comparing(MOST_COMPARED):
            yield effort
    finally:
        _current.reset(token)


def spend(steps: int = 1) -> None:
    """Count some work before it is done; raises InvalidSpecError where it is too much, and what `deadline` raises."""
    effort = _current.get()
    if effort is None:
        return
    before, effort.steps = effort.steps, effort.steps + steps
    if effort.steps > MOST_STEPS:
        raise InvalidSpecError([Problem("", _TOO_MUCH)])
    if before // _LOOK != effort.steps // _LOOK:
        deadline.check()
