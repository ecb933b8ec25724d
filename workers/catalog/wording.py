"""The words of messages: values as they are shown, lists, and suggestions for misspelt names."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from pydantic_core import ErrorDetails

_NEAR: Final = 0.6  # of the characters that two names have in common, as difflib counts them
_LONGEST_COMPARED: Final = 100  # characters of a name that is compared
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
    if len(name) > _LONGEST_COMPARED:
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


_LONGEST: Final = 80  # characters of a value in a message
_FEW: Final = 30  # values that a message lists


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a recipe or a spec, at a path such as `loss.alpha`; "" is the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}  {self.message}" if self.path else self.message


def brief(told: str, most: int = _LONGEST) -> str:
    """A text of which no more than `most` characters stand in a message."""
    return told if len(told) <= most else f"{told[: most - 3]}..."


def shown(value: Any) -> str:
    """A value as a message shows it: a text in quotes, the rest as JSON, never long, however huge it is."""
    seen = _outline(value, [_LONGEST])
    return brief(repr(seen) if isinstance(value, str) else json.dumps(seen, default=str, ensure_ascii=False))


def _outline(value: Any, room: list[int]) -> Any:
    """As much of a value as can be seen: every item of it takes at least one character of the `room`."""
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
    """Values as a message lists them, the first of many: `'a', 'b'`."""
    several = list(values)
    more = f" and {len(several) - _FEW:,} more" if len(several) > _FEW else ""
    return ", ".join(shown(value) for value in several[:_FEW]) + more


def meant(name: str, known: Iterable[str]) -> str:
    """What would be right instead of `name`: the near miss, else all that is known, as `known` orders it."""
    names = list(known)
    if (close := near(name, names)) is not None:
        return f"did you mean {close!r}?"
    return f"expected one of {listed(names)}" if names else "there is none"


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Nothing of that kind has this name: `no loss named 'tripplet'; did you mean 'triplet'?`."""
    return f"no {what} named {shown(name)}; {meant(name, sorted(known))}"


def not_computed(dataset: str, metric: str, declared: Iterable[str]) -> str:
    """Why there is no value of a metric on a data set, and how there would be one."""
    right = meant(metric, sorted(declared))
    right = right if right.endswith("?") else f"{right}."
    return f"{dataset} does not compute {metric!r}; {right} `metrics: [{metric}]` in the recipe adds it"


def counted(number: int, noun: str) -> str:
    """`1 class`, `3 classes`, `2 images`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


_SAID: Final[Mapping[str, str]] = {
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
"""The errors of pydantic in the words of this project."""


def sentence(error: ErrorDetails, otherwise: Mapping[str, str] | None = None) -> str:
    """What pydantic found wrong with a value; `otherwise` has other words for some kinds of errors."""
    said = {**_SAID, **(otherwise or {})}.get(error["type"], f"{error['msg']}, found {{found}}")
    context = error.get("ctx", {})
    # A bound on a fractional number reads as the whole number that it is.
    limits = {key: int(limit) if _is_whole(limit) else limit for key, limit in context.items()}
    limits |= {"tag": shown(context["tag"])} if "tag" in context else {}
    return said.format(found=shown(error["input"]), **limits)


def _is_whole(limit: Any) -> bool:
    return isinstance(limit, float) and limit.is_integer()
