"""How a trial's recipe differs from that of another one beside it."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.views.pages import View


class Difference(View):
    """A value that two recipes do not share; null: only the other one has it."""

    path: str
    own: Any = None
    other: Any = None


class Neighbour(View):
    """Another trial, why it is looked at, and what it was trained with instead."""

    trial: int
    why: str
    differences: list[Difference]


def differences(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """By path, in the order of the own recipe; what nobody chose (`version`, `pins`) is left out."""
    mine, theirs = dict(leaves(own)), dict(leaves(other))
    paths = [*mine, *(path for path in theirs if path not in mine)]
    return [
        Difference(path=path, own=mine.get(path), other=theirs.get(path))
        for path in paths
        if path.partition(".")[0] not in {"version", "pins"} and mine.get(path) != theirs.get(path)
    ]


def leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What a recipe holds by its path, such as `optimizer.lr`."""
    for key, held in value.items():
        if isinstance(held, Mapping) and held:
            yield from leaves(held, f"{prefix}{key}.")
        else:
            yield prefix + key, held
