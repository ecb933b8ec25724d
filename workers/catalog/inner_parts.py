"""Parts within parts: a hyper-parameter that is itself a part, such as the network whose features `frozen` takes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue

from workers.catalog.inventory import Catalog
from workers.catalog.parameter import Parameter
from workers.catalog.signature import Entry
from workers.contract import PART_FIELDS, Part, Recipe


class Inner(NamedTuple):
    """A part that another one holds."""

    path: str
    """Where it stands in a recipe: `backbone.of`."""
    part: Part
    entry: Entry


def holders(entry: Entry) -> list[Parameter]:
    """The hyper-parameters of a part that are parts themselves."""
    return [one for one in entry.parameters if one.type == "part"]


def inner(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> list[Inner]:
    """The parts that stand among the options of another, as far as they exist."""
    found = []
    for one in holders(entry):
        part = Part.model_validate(options[one.name]) if options.get(one.name) is not None else None
        within = catalog.get(one.kind, part.name) if part else None
        if part and within:
            found.append(Inner(f"{entry.kind}.{one.name}", part, within))
    return found


def inner_of(recipe: Recipe, catalog: Catalog) -> list[Inner]:
    """All those of a recipe."""
    parts = [(kind, recipe.part(kind)) for kind in recipe.kinds]
    held = [(catalog.get(kind, part.name), part) for kind, part in parts]
    return [one for entry, part in held if entry for one in inner(entry, part.options, catalog)]


def named(recipe: Recipe, catalog: Catalog) -> dict[str, str]:
    """The name of each part of a recipe by its kind, and of each part within one by its path, such as `backbone.of`."""
    names = {kind: recipe.part(kind).name for kind in recipe.kinds}
    return names | {one.path: one.part.name for one in inner_of(recipe, catalog)}


def named_in(recipe: Mapping[str, Any], versions: Mapping[str, int]) -> dict[str, str | None]:
    """The same of a completed recipe that is JSON, by the versions that it is pinned with; none where it holds none."""
    names = {kind: (recipe.get(kind) or {}).get("name") for kind in PART_FIELDS}
    for path in versions:
        kind, _, option = path.partition(".")
        if option and kind in PART_FIELDS:
            names[path] = ((recipe.get(kind) or {}).get(option) or {}).get("name")
    return names


def entry_at(path: str, names: Mapping[str, str], catalog: Catalog) -> Entry | None:
    """The part at a path of a recipe, `loss` or `backbone.of`, by the names that `named` gives."""
    kind, _, option = path.partition(".")
    entry = catalog.get(kind, names.get(kind, ""))
    if not option:
        return entry
    holder = entry.parameter(option) if entry else None
    return catalog.get(holder.kind, names[path]) if holder else None


def filled(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> dict[str, JsonValue]:
    """As `Entry.filled`, and the options of parts within it likewise; raises ValueError."""
    found = entry.filled(options)
    for one in inner(entry, found, catalog):
        found[one.path.partition(".")[2]] = {"name": one.part.name, **one.entry.filled(one.part.options)}
    return found
