"""A problem, and how its message shows values, lists them and suggests the name that was meant."""

import difflib
import itertools
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from workers.contract import Frozen

_LONGEST: Final = 80
_LONGEST_NAME: Final = 64  # of a part or a hyper-parameter, and so of what may be meant for one


class Problem(Frozen):
    """One thing wrong with a recipe, at a path such as `loss.alpha`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}  {self.message}"


def shown(value: Any) -> str:
    """A value as a message shows it: a text in quotes, the rest as JSON, never long, however huge it is."""
    seen = _outline(value, [_LONGEST])
    text = repr(seen) if isinstance(value, str) else json.dumps(seen, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


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
    """Values as a message lists them: `'a', 'b'`."""
    return ", ".join(shown(value) for value in values)


def meant(name: str, known: Iterable[str]) -> str:
    """What would be right instead of `name`: the near miss, else all that is known."""
    names = tuple(sorted(known))
    if (close := _near(name, names) if len(name) <= _LONGEST_NAME else None) is not None:
        return f"did you mean {close!r}?"
    return f"expected one of {listed(names)}" if names else "there is none"


def not_computed(dataset: str, metric: str, declared: Iterable[str]) -> str:
    """Why there is no value of a metric on a data set, and how there would be one."""
    right = meant(metric, declared)
    right = right if right.endswith("?") else f"{right}."
    return f"{dataset} does not compute {metric!r}; {right} `metrics: [{metric}]` in the recipe adds it"


@lru_cache(maxsize=1024)
def _near(name: str, names: tuple[str, ...]) -> str | None:
    """Looked for once, since the same mistake stands in all recipes of a sweep."""
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.6)), None)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """No part of that kind has this name."""
    return f"no {kind} named {shown(name)}; {meant(name, known)}"


def counted(number: int, noun: str) -> str:
    """`1 class`, `3 classes`, `2 images`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
