"""A problem, and how its message shows values, lists them and suggests the name that was meant."""

import difflib
import json
from collections.abc import Iterable
from typing import Any, Final

from workers.contract import Frozen

_LONGEST: Final = 80


class Problem(Frozen):
    """One thing wrong with a recipe, at a path such as `loss.alpha`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}  {self.message}"


def shown(value: Any) -> str:
    """A value as a message shows it: a text in quotes, the rest as JSON, never long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def listed(values: Iterable[Any]) -> str:
    """Values as a message lists them: `'a', 'b'`."""
    return ", ".join(shown(value) for value in values)


def meant(name: str, known: Iterable[str]) -> str:
    """What would be right instead of `name`: the near miss, else all that is known."""
    names = sorted(known)
    if close := difflib.get_close_matches(name, names, n=1, cutoff=0.6):
        return f"did you mean {close[0]!r}?"
    return f"expected one of {listed(names)}" if names else "there is none"


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """No part of that kind has this name."""
    return f"no {kind} named {shown(name)}; {meant(name, known)}"


def counted(number: int, noun: str) -> str:
    """`1 class`, `3 classes`, `2 images`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
