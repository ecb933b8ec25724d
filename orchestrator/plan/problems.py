"""The problems of a posted spec: where each is, and the sentence that says what would be right."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.views import errors
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem, comparing, meant, sentence, shown

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
        errors.check()


MOST_TOLD: Final = 200
"""Problems that are told; the rest is counted."""

_KEPT: Final = 1_000
_UNTOLD: Final = Problem("", "one of many more problems")


class Findings(list[Problem]):
    """A list of problems that holds the first thousand, and of all further ones no more than that they exist."""

    def append(self, one: Problem) -> None:
        """Add a problem."""
        super().append(one if len(self) < _KEPT else _UNTOLD)

    def extend(self, several: Iterable[Problem]) -> None:
        """Add several."""
        for one in several:
            self.append(one)

    def __iadd__(self, several: Iterable[Problem]) -> Self:  # type: ignore[override,misc]
        self.extend(several)
        return self

    def told(self, order: Any = None) -> list[Problem]:
        """Each problem once, in `order` (a sort key) or as they were noted, with the number of those left out."""
        kept = self[:_KEPT]
        unlike = list(dict.fromkeys(kept))
        ordered = unlike if order is None else sorted(unlike, key=order)
        more = len(ordered[MOST_TOLD:]) + len(self) - len(kept)
        return [*ordered[:MOST_TOLD], *([Problem("", f"and {more:,} more problems")] if more else [])]


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where something is read, such as `tables.main`, and the list of all problems."""

    path: str
    problems: list[Problem]

    def note(self, field: str, message: str) -> None:
        """Note what is wrong at a field of it; at itself where that is ""."""
        self.problems.append(Problem(f"{self.path}.{field}" if field else self.path, message))


def sentences(error: ValidationError, source: str, model: type[BaseModel]) -> Iterator[Problem]:
    """What pydantic found wrong with the block at `source`, one problem a field."""
    said: set[str] = set()
    for details in itertools.islice(error.errors(include_url=False), MOST_TOLD):
        field = str(details["loc"][0]) if details["loc"] else ""
        path = ".".join(part for part in (source, field) if part)
        if path not in said:  # the members of a union each complain
            said.add(path)
            yield Problem(path, _sentence(details, field, model))


def _sentence(details: ErrorDetails, field: str, model: type[BaseModel]) -> str:
    nested = len(details["loc"]) > 1 and field in _UNIONS
    if details["type"] == "extra_forbidden" and not nested:
        return f"there is no key {shown(field)} here; {meant(field, model.model_fields)}"
    if nested:
        return f"expected {_UNIONS[field]}"
    return sentence(details)


_UNIONS: Final[Mapping[str, str]] = {
    "gpus": "a share of a GPU such as 0.5, a whole number of GPUs, or 'auto'",
    "bold": "'none' or a list of axes",
    "rows": "a list of axes",
    "columns": "a list of axes",
    "quoted": "a list of rows such as `{of: {loss: jigsaw}, label: Jigsaw}`, where `of` has texts, and perhaps `bold`",
    "panels": "a list of mappings from a column axis to a list of its labels",
    "labels": "a mapping from an axis to a mapping from its labels to texts",
    "titles": "a mapping from an axis to a text, or to null for no headings",
    "split": "'test', 'test_separated', 'validation', 'train', or 'test_' with the name of a test set",
    "selections": "a list of 'validation' and 'test'",
    "std": "true, false or a mapping with `decimals` and `unit`",
}
"""What fields of several or of nested forms want, since pydantic speaks of each form by itself."""
