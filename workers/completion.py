"""A recipe with everything said that its training depends on, so that equal meanings have equal fingerprints."""

from workers.contract import PART_FIELDS, Part, Recipe
from workers.inventory import Catalog


def complete(recipe: Recipe, catalog: Catalog) -> Recipe:
    """`recipe` with defaults filled in, values in the catalog's types, and pins.

    The recipe has no problems. Completing it again changes nothing.
    """
    parts: dict[str, Part] = {}
    versions: dict[str, int] = {}
    manifest: str | None = None
    for kind in PART_FIELDS:
        part = recipe.part(kind)
        entry = catalog.get(kind, part.name)
        if entry is None:
            raise LookupError(f"no {kind} named {part.name!r}; check a recipe for problems before completing it")
        parts[kind] = Part.model_validate({"name": part.name, **entry.filled(part.options)})
        versions[kind] = entry.version
        if kind == "dataset":
            stated = entry.facts.get("manifest")
            manifest = stated if isinstance(stated, str) else None
    return recipe.model_copy(
        update={
            **parts,
            "evaluate_every": recipe.evaluate_every or max(1, recipe.iterations // 10),
            "pins": recipe.pins.model_copy(update={"versions": versions, "manifest": manifest}),
        }
    )
