"""What sweeps hold otherwise, besides what the labels of their cells tell apart: a comparison must say it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.views.outcomes import SweepOutcomes

_MOST: Final = 12
"""Differences that are named."""
_UNTOLD: Final = ("seed", "select")  # seeds are averaged over; what is selected by is said elsewhere


def disagreement(several: Sequence[SweepOutcomes], axes: Collection[str]) -> str:
    """One sentence on recipes, alternatives of the same label, and rules; "" where they agree.

    `axes` are those whose labels tell the cells apart.
    """
    found = [*_recipes(several, axes), *_alternatives(several), *_rules(several)]
    if not found:
        return ""
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"The sweeps also differ in {'; '.join(found[:_MOST])}{more}."


def _recipes(several: Sequence[SweepOutcomes], axes: Collection[str]) -> Iterator[str]:
    leaves = {one.sweep: dict(_leaves(one.spec.get("recipe") or {})) for one in several}
    for path in dict.fromkeys(path for found in leaves.values() for path in found):
        if any(path == axis or path.startswith(f"{axis}.") for axis in (*axes, *_UNTOLD)):
            continue
        values = {sweep: found.get(path) for sweep, found in leaves.items()}
        if len({repr(value) for value in values.values()}) > 1:
            yield f"{path} ({', '.join(f'{sweep}: {_said(value)}' for sweep, value in values.items())})"


def _alternatives(several: Sequence[SweepOutcomes]) -> Iterator[str]:
    """Labels of compare axes that patch a recipe otherwise in another sweep."""
    patches: dict[tuple[str, str], dict[int, set[str]]] = {}
    for one in several:
        for axis, groups in (one.spec.get("compare") or {}).items():
            for choice in (choice for group in groups for choice in group["choices"]):
                held = patches.setdefault((axis, choice["label"]), {})
                held.setdefault(one.sweep, set()).add(repr(sorted(choice["patch"].items())))
    for (axis, label), held in patches.items():
        if len({frozenset(one) for one in held.values()}) > 1:
            yield f"what {axis} {label} sets"


def _rules(several: Sequence[SweepOutcomes]) -> Iterator[str]:
    if len({repr(one.spec.get("rules") or []) for one in several}) > 1:
        yield "their rules"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a recipe by its path; a part's name stands at the part."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _leaves(below, path if key == "name" and path else f"{path}.{key}".lstrip("."))
    else:
        yield path, value


def _said(value: Any) -> str:
    return "unset" if value is None else str(value)
