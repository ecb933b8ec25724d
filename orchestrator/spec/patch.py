"""Patches: values by path of the recipe, and what a recipe becomes by them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue

from orchestrator.spec.when import When
from workers.contract import Frozen

Patch = dict[str, JsonValue]
"""Values by path: a part with its `name` at its kind (replaces it), anything else at `kind.option` or at a field."""

Sources = dict[str, str]
"""The place in the document by path of a patch."""

Source = Annotated[str, Field(exclude=True, repr=False)]
"""A place in the document, for messages; never stored."""
PatchSources = Annotated[Sources, Field(exclude=True, repr=False)]


class Rule(Frozen):
    """A patch of the cells that several axes decide on."""

    when: When
    patch: Patch
    source: Source = ""
    sources: PatchSources = Field(default_factory=dict)


def apply(recipe: Mapping[str, Any], patches: Iterable[Mapping[str, Any]]) -> Patch:
    """A new recipe with the patches of one rank applied: first those that replace parts, then those within parts."""
    patched = dict(recipe)
    within: list[tuple[str, Any]] = []
    for patch in patches:
        for path, value in patch.items():
            if "." in path:
                within.append((path, value))
            else:
                patched[path] = value
    for path, value in within:
        field, _, option = path.partition(".")
        part = patched.get(field)
        if isinstance(part, dict):  # else the part is missing, and that is the problem to report
            patched[field] = {**part, option: value}
    return patched
