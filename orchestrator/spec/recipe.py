"""The recipe of a spec: which of a recipe's fields a spec sets, and what its base recipe holds."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.spec.label import label_of
from orchestrator.spec.patch import Patch
from workers.contract import PART_FIELDS, Part, Recipe

ELSEWHERE: Final[Mapping[str, str]] = {
    "select": "`select` stands at the top of the spec, and the plan copies it into each recipe",
    "version": "`version` stands at the top of the spec",
    "pins": "`pins` are filled in from the catalog",
}
"""Fields of a recipe that a spec does not set there, with the reason."""

FIELDS: Final = tuple(field for field in Recipe.model_fields if field not in ELSEWHERE)
PARTS: Final = (*PART_FIELDS, "validation")
"""The fields that hold a mapping with a `name`."""


def base_recipe() -> Patch:
    """What a recipe holds before anything is posted: the contract's default parts, and no validation."""
    defaults = {name: field.default for name, field in Recipe.model_fields.items()}
    parts: Patch = {name: {"name": part.name} for name, part in defaults.items() if isinstance(part, Part)}
    return parts | {"validation": {"name": "none"}}


def held(path: str, recipe: Mapping[str, Any]) -> str | None:
    """The value that a recipe holds at a path, as a label; none where it holds none."""
    value: Any = recipe
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("name")
    return None if value is None else label_of(value)


def shared(recipes: Sequence[Mapping[str, Any]]) -> Patch:
    """What several recipes hold alike: fields of the same value, and of the same part the options that agree."""
    first, *others = recipes
    return {path: _alike(value, [one[path] for one in others])
            for path, value in first.items()
            if all(path in one and _name(one[path]) == _name(value) for one in others)}  # fmt: skip


def _alike(value: Any, others: Sequence[Any]) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(one, Mapping) for one in others):
        return value
    return {key: inner for key, inner in value.items() if all(key in one and one[key] == inner for one in others)}


def _name(value: Any) -> Any:
    return value.get("name") if isinstance(value, Mapping) else value
