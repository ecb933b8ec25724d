"""Which line of a document is to blame: who set each path of a recipe."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.spec.axis import Choice, Group
from orchestrator.spec.patch import Patch, Rule, Sources
from orchestrator.spec.spec import Spec

Setting = Choice | Rule


class Setter(NamedTuple):
    """What set a path last: its place in the document, and the axis when it was a choice."""

    source: str
    axis: str | None = None
    setting: Setting | None = None


Setters = dict[str, Setter]
"""Who set what, by path of the recipe."""


def base_setters(sources: Sources) -> Setters:
    """The setters of the base recipe."""
    return {path: Setter(source) for path, source in sources.items()}


def with_rank(setters: Setters, settings: Iterable[tuple[str | None, Setting]]) -> Setters:
    """The setters after one more rank, given as (axis, setting): what replaces a part sets it whole."""
    settings = list(settings)
    replaced = {path for _, setting in settings for path, value in setting.patch.items() if _is_part(path, value)}
    found = {path: setter for path, setter in setters.items() if path.partition(".")[0] not in replaced}
    for axis, setting in settings:
        for path, source in setting.sources.items():
            found[path] = Setter(source, axis, setting)
    return found


def setter_of(path: str, setters: Setters) -> Setter:
    """Who set a path, or the nearest part around it; the base recipe where no one did."""
    around = path
    while around not in setters and "." in around:
        around = around.rpartition(".")[0]
    return setters.get(around, Setter(f"recipe.{path}"))


def group_of(setter: Setter, spec: Spec) -> Group | None:
    """The group of the choice that is the setter."""
    if setter.axis is None or setter.setting is None:
        return None
    source = re.sub(r"(\.values)?\[\d+\]$|\.(low|high)$", "", setter.setting.source)
    groups = (spec.compare | spec.tune).get(setter.axis, [])
    return next((group for group in groups if group.source == source), None)


def _is_part(path: str, value: object) -> bool:
    return "." not in path and isinstance(value, dict)


def named_part(kind: str, patch: Patch) -> str | None:
    """The name of the part that a patch puts at `kind`."""
    part = patch.get(kind)
    name = part.get("name") if isinstance(part, dict) else None
    return name if isinstance(name, str) else None
