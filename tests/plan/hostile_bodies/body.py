"""A hostile body: at most 1 MiB that is posted as a spec, cheap to send and dear to check badly."""

import json
from collections.abc import Callable
from typing import Any, Final

LIMIT: Final = 1024 * 1024
RECIPE: Final[dict[str, Any]] = {
    "dataset": "digits",
    "backbone": "mlp",
    "loss": "triplet",
    "sampler": {"name": "balanced", "classes": 2, "per_class": 4},
    "iterations": 10,
    "validation": {"name": "class_holdout", "folds": 3},
}
HEAD: Final = f"version: 1\nname: hostile\nrecipe: {json.dumps(RECIPE)}\n"

Body = Callable[[], bytes]
BODIES: Final[dict[str, Body]] = {}
"""What is posted, by what is wrong with it."""


def body(make: Callable[[], str | bytes | dict[str, Any]]) -> Callable[[], str | bytes | dict[str, Any]]:
    def whole() -> bytes:
        made = make()
        text = (
            json.dumps({"version": 1, "name": "hostile", "recipe": RECIPE, **made}) if isinstance(made, dict) else made
        )
        posted = text.encode() if isinstance(text, str) else text
        assert len(posted) <= LIMIT, (make.__name__, len(posted))
        return posted

    BODIES[make.__name__.replace("_", " ")] = whole
    return make


def filled(head: str, piece: Callable[[int], str], most: int = 10**9, foot: str = "") -> str:
    """As many pieces as the limit takes, between head and foot."""
    found, left = [head], LIMIT - len(head.encode()) - len(foot.encode())
    for number in range(most):
        one = piece(number)
        left -= len(one.encode())
        if left < 0:
            break
        found.append(one)
    return "".join([*found, foot])


def axis(count: int, first: int = 1) -> list[int]:
    return list(range(first, first + count))
