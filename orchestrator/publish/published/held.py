"""The labels that a cell has beside those of its axes: what its recipe holds at a path that the sweep does not vary."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.publish.published.glossary import glossary
from orchestrator.publish.published.library import PublishedTable
from orchestrator.spec.axis import Role
from orchestrator.spec.label import label_of
from orchestrator.spec.patch import Patch, apply
from orchestrator.spec.when import applies
from orchestrator.views.planned import Labels
from workers.catalog import Catalog


def held_labels(spec: Mapping[str, Any], labels: Labels, table: PublishedTable, parts: Catalog) -> Labels:
    """`labels` of a cell of the sweep with a label for every axis of the printed table that the spec decides.

    An axis that is tuned or repeated stays out, since the cell holds several values there; "" is where none applies.
    """
    names = glossary(table.paper)
    given = {names.axis(axis) for axis in labels}
    varied = {names.axis(axis) for axis in spec.get("compare") or {}}
    open_ = set(_varied(spec))
    missing = [axis for axis in table.axes if axis not in given and axis not in open_]
    recipe = held_recipe(spec, labels)
    found = {axis: "" if axis in varied else _at(recipe, axis, parts) for axis in missing}
    return {**labels, **{axis: label for axis, label in found.items() if label is not None}}


def _varied(spec: Mapping[str, Any]) -> Iterator[str]:
    """The paths that tune and repeat axes set, by name or in their patches."""
    for role in ("tune", "repeat"):
        for axis, groups in (spec.get(role) or {}).items():
            yield axis
            for choice in (choice for group in groups for choice in group["choices"]):
                yield from choice["patch"]


def held_recipe(spec: Mapping[str, Any], labels: Labels, tuned: Labels | None = None) -> dict[str, Any]:
    """The base recipe with the cell's alternatives, then the rules that apply to it, then what a candidate tunes."""
    rules = [rule["patch"] for rule in spec.get("rules") or () if applies(rule["when"], labels)]
    recipe = apply(apply(spec.get("recipe") or {}, _chosen(spec, "compare", labels)), rules)
    return apply(recipe, _chosen(spec, "tune", {**labels, **tuned})) if tuned else recipe


def _chosen(spec: Mapping[str, Any], role: Role, labels: Labels) -> list[Patch]:
    """The patches of the alternatives of a role's axes that have these labels."""
    return [
        choice["patch"]
        for axis, groups in (spec.get(role) or {}).items()
        for group in groups
        for choice in group["choices"]
        if choice["label"] == labels.get(axis) and applies(group["when"], labels)
    ]


def _at(recipe: Mapping[str, Any], axis: str, parts: Catalog) -> str | None:
    """The label of what a recipe holds at a path, its part's default included; none where nobody can say."""
    kind, _, option = axis.partition(".")
    value = recipe.get(kind)
    if option:
        part = {"name": value} if isinstance(value, str) else value
        if not isinstance(part, Mapping) or not (entry := parts.get(kind, str(part.get("name")))):
            return None
        default = entry.parameter(option)
        value = part.get(option, default.default if default else "")
    elif isinstance(value, Mapping):
        value = value.get("name")
    return None if value is None else label_of(value)
