"""The problems of a posted spec: where each is, and the sentence that says what would be right."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from orchestrator.spec.fields import UNION
from orchestrator.views import errors
from orchestrator.views.errors import InvalidSpecError, TooLargeError
from workers.catalog import (
    MOST_REPORTED,
    Document,
    DocumentError,
    DocumentTooLargeError,
    Problem,
    comparing,
    load_document,
)

MOST_STEPS: Final = 1_500_000
"""Steps of one check: groups and alternatives that are examined."""
_MOST_COMPARED: Final = 1_000_000
"""Pairs of characters that are compared to find near misses; after that there are no suggestions."""

_TOO_MUCH: Final = (
    "the spec takes too long to check: its groups with `when`, its rules or its tables stand for too many "
    "combinations; write fewer of them, or divide the sweep"
)
_LOOK: Final = 1 << 12  # steps after which the deadline is checked


@dataclass
class Effort:
    """Counts the steps that the check of a spec has taken."""

    steps: int = 0


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited() -> Iterator[Effort]:
    """Limit the number of steps that the check of a spec may take within the block."""
    effort = Effort()
    token = _current.set(effort)
    try:
        with comparing(_MOST_COMPARED):
            yield effort
    finally:
        _current.reset(token)


def spend(steps: int = 1) -> None:
    """Count steps of the check; raises InvalidSpecError above the limit, GoneError if the client has disconnected."""
    effort = _current.get()
    if effort is None:
        return
    before, effort.steps = effort.steps, effort.steps + steps
    if effort.steps > MOST_STEPS:
        raise InvalidSpecError([Problem("", _TOO_MUCH)])
    if before // _LOOK != effort.steps // _LOOK:
        errors.check()


def spec_document(text: bytes) -> Document:
    """Parse a posted YAML text as plain data; raises InvalidSpecError, or TooLargeError over 1 MiB."""
    try:
        return load_document(text)
    except DocumentTooLargeError as error:
        raise TooLargeError(f"The spec is too large: {error}.") from None
    except DocumentError as error:
        raise InvalidSpecError(error.problems) from None


@contextmanager
def located(text: bytes) -> Iterator[Document]:
    """Parse a posted text as `spec_document`; InvalidSpecErrors that the block raises get its line numbers."""
    document = spec_document(text)
    try:
        yield document
    except InvalidSpecError as error:
        problems = [replace(one, line=one.line or document.line(one.path)) for one in error.problems]
        raise InvalidSpecError(problems) from None


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A place in a document, such as `tables.main`, with the list that collects the problems of the whole document."""

    path: str
    problems: list[Problem]

    def note(self, field: str, message: str) -> None:
        """Append a problem of one field of this place; the field "" means the place itself."""
        self.problems.append(Problem(f"{self.path}.{field}" if field else self.path, message))


def form_problems(error: ValidationError) -> Iterator[Problem]:
    """Converts a pydantic error to problems with paths; at most as many as are reported."""
    for details in itertools.islice(error.errors(include_url=False), MOST_REPORTED + 1):
        yield Problem(_path(details["loc"]), details["msg"])


def _path(loc: Sequence[str | int]) -> str:
    """A path such as `compare.loss[3].label`; the members of unions are left out."""
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(UNION) and step != "[key]":
            path += f".{step}" if path else step
    return path
