"""The wording of messages: values, lists, and suggestions for misspelt names."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Self

from pydantic_core import ErrorDetails

_NEAR: Final = 0.6  # the least similarity of two names, as difflib measures it
_LONGEST_COMPARED: Final = 100  # characters of a name
_MOST_COMPARED: Final = 500  # names

_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def comparing(most: int) -> Iterator[None]:
    """Limit the number of character pairs that `near` compares within the block; above it, no similar name is found."""
    token = _left.set([most])
    try:
        yield
    finally:
        _left.reset(token)


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a misspelt name, ignoring case; None if none is similar."""
    if len(name) > _LONGEST_COMPARED:
        return None
    try:
        return _nearest(name.casefold(), tuple(islice(known, _MOST_COMPARED)))
    except _ExhaustedError:
        return None


class _ExhaustedError(Exception):
    """The limit of `comparing` is reached. Raised so that the incomplete search is not cached."""


@lru_cache(maxsize=1024)  # the same mistake is in all recipes of a sweep
def _nearest(folded: str, names: tuple[str, ...]) -> str | None:
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


_LONGEST: Final = 80  # characters of a value in a message
_FEW: Final = 30  # values that a message lists


@dataclass(frozen=True, order=True)
class Problem:
    """A mistake in a recipe or a spec at a path such as `loss.alpha`; the path "" is the whole document."""

    path: str
    message: str
    line: int | None = field(default=None, compare=False)
    """The line of the document, from 1 on; None if it is not known."""

    def __str__(self) -> str:
        line = f"line {self.line}: " if self.line else ""
        return f"{line}{self.path}  {self.message}" if self.path else self.message


MOST_REPORTED: Final = 200
"""Problems that are reported; the others are counted."""

_KEPT: Final = 1_000
_FURTHER: Final = Problem("", "one of many more problems")


class Findings(list[Problem]):
    """A list of problems that keeps the first thousand and only counts further problems."""

    def append(self, problem: Problem) -> None:
        super().append(problem if len(self) < _KEPT else _FURTHER)

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.append(problem)

    def __iadd__(self, problems: Iterable[Problem]) -> Self:  # type: ignore[override,misc]
        self.extend(problems)
        return self

    def report(self, order: Any = None) -> list[Problem]:
        """The distinct problems, sorted by the key `order` or as found, and a note on how many were left out."""
        kept = self[:_KEPT]
        unique = list(dict.fromkeys(kept))
        ordered = unique if order is None else sorted(unique, key=order)
        more = len(ordered[MOST_REPORTED:]) + len(self) - len(kept)
        return [*ordered[:MOST_REPORTED], *([Problem("", f"and {more:,} more problems")] if more else [])]


def brief(text: str, most: int = _LONGEST) -> str:
    """Cuts a text for a message after `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shown(value: Any) -> str:
    """A value for a message: a text in quotes, anything else as JSON, always short."""
    seen = _outline(value, [_LONGEST])
    return brief(repr(seen) if isinstance(value, str) else json.dumps(seen, default=str, ensure_ascii=False))


def _outline(value: Any, room: list[int]) -> Any:
    """The part of a value that a message can show; every item takes at least one character of the `room`."""
    room[0] -= 1
    if isinstance(value, str):
        return value[:_LONGEST]
    if isinstance(value, Mapping):
        seen = itertools.takewhile(lambda _: room[0] > 0, value.items())
        return {str(key)[:_LONGEST]: _outline(inner, room) for key, inner in seen}
    if isinstance(value, list | tuple):
        return [_outline(inner, room) for inner in itertools.takewhile(lambda _: room[0] > 0, value)]
    return value


def listed(values: Iterable[Any]) -> str:
    """The first of several values for a message: `'a', 'b'`."""
    every = list(values)
    more = f" and {len(every) - _FEW:,} more" if len(every) > _FEW else ""
    return ", ".join(shown(value) for value in every[:_FEW]) + more


def suggestion(name: str, known: Iterable[str]) -> str:
    """Advice for a wrong name: a similar known name, or all known names."""
    names = list(known)
    if (close := near(name, names)) is not None:
        return f"did you mean {close!r}?"
    return f"expected one of {listed(names)}" if names else "there is none"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for an unknown name: `no loss named 'tripplet'; did you mean 'triplet'?`."""
    return f"no {what} named {shown(name)}; {suggestion(name, sorted(known))}"


def not_computed(dataset: str, metric: str, declared: Iterable[str]) -> str:
    """The message that trainings on a data set do not compute a metric, and how to get its value."""
    right = suggestion(metric, sorted(declared))
    right = right if right.endswith("?") else f"{right}."
    return f"{dataset} does not compute {metric!r}; {right} `metrics: [{metric}]` in the recipe adds it"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 class`, `3 classes`, `2 images`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "string_type": "expected a text, found {found}",
    "int_type": "expected a whole number, found {found}",
    "int_from_float": "expected a whole number, found {found}",
    "int_parsing_size": "expected a smaller number, found {found}",
    "float_type": "expected a number, found {found}",
    "finite_number": "expected a finite number, found {found}",
    "bool_type": "expected true or false, found {found}",
    "list_type": "expected a list, found {found}",
    "dict_type": "expected a mapping, found {found}",
    "model_type": "expected a mapping, found {found}",
    "literal_error": "expected {expected}, found {found}",
    "greater_than": "expected more than {gt:,}, found {found}",
    "greater_than_equal": "expected at least {ge:,}, found {found}",
    "less_than": "expected less than {lt:,}, found {found}",
    "less_than_equal": "expected at most {le:,}, found {found}",
    "too_long": "expected at most {max_length:,} entries",
    "too_short": "expected entries, at least {min_length:,}",
    "string_too_long": "expected at most {max_length:,} characters",
    "string_too_short": "expected at least one character",
    "value_error": "{error}",
}
"""The messages for the types of pydantic's errors."""


def sentence(error: ErrorDetails, otherwise: Mapping[str, str] | None = None) -> str:
    """The message for an error of pydantic; `otherwise` replaces the messages of some error types."""
    message = {**_MESSAGES, **(otherwise or {})}.get(error["type"], f"{error['msg']}, found {{found}}")
    context = error.get("ctx", {})
    # The limit 1.0 of a fractional number reads `1`.
    limits = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in context.items()
    }
    limits |= {"tag": shown(context["tag"])} if "tag" in context else {}
    return message.format(found=shown(error["input"]), **limits)
