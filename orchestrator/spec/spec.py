"""The normalized spec: what a posted document means, with every short form written out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from orchestrator.spec.axes import (
    ROLES,
    Axis,
    Choice,
    Patch,
    Prune,
    Role,
    Rule,
    Search,
    Selection,
    Slot,
    SlotRule,
)
from orchestrator.spec.fields import When, label_of
from orchestrator.spec.layouts import FigureSpec, TableSpec
from workers.contract import Frozen


class Spec(Frozen):
    """A checked spec with all short forms expanded; its JSON is stored with the sweep and gives the same plan again."""

    version: Literal[1] = 1
    name: str
    description: str = ""
    recipe: Patch
    """The base recipe: parts as mappings with `name`, and the recipe's own defaults."""
    compare: dict[str, Axis] = Field(default_factory=dict)
    tune: dict[str, Axis] = Field(default_factory=dict)
    repeat: dict[str, Axis] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)
    only: When = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The labels by axis of the trials that were taken from the posted spec; empty means all."""
    without: When = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The labels whose trials were left out; the text of the sweep still holds them."""
    select: Selection = Selection()
    slot: Slot = Slot()
    slots: list[SlotRule] = Field(default_factory=list)
    search: Search = Search()
    prune: Prune | None = Field(default=None, exclude_if=lambda value: value is None)
    """The rule that stops candidates early; None means that all candidates are trained to the end."""
    tables: dict[str, TableSpec] = Field(default_factory=dict)
    figures: dict[str, FigureSpec] = Field(default_factory=dict)
    fresh: bool = False
    """Whether every training runs again, even if a training with its fingerprint has finished."""

    def axes(self, role: Role) -> dict[str, Axis]:
        """The spec's axes of one role (compare, tune or repeat) by name, in the order of the spec."""
        axes: dict[str, Axis] = getattr(self, role)
        return axes

    def patches(self) -> Iterator[Patch]:
        """All patches of the spec: its base recipe, the alternatives of all axes, and the rules."""
        yield self.recipe
        for role in ROLES:
            for groups in self.axes(role).values():
                yield from (choice.patch for group in groups for choice in group.choices)
        yield from (rule.patch for rule in self.rules)

    def named(self, kind: str) -> list[str]:
        """The names of the parts of a kind that axes and rules set, or else the name in the base recipe."""
        base, *others = ("" if not isinstance(part := patch.get(kind), dict) else str(part.get("name", ""))
                         for patch in self.patches())  # fmt: skip
        return [*dict.fromkeys(name for name in others if name)] or [base]

    def labels_at(self, axis: str) -> list[str] | None:
        """The labels of a compare axis, or the only value that the recipe holds; None where it is neither."""
        if axis in self.compare:
            return [choice.label for group in self.compare[axis] for choice in group.choices]
        value = recipe_label(axis, self.recipe)
        return None if value is None else [value]


def recipe_label(path: str, recipe: Mapping[str, Any]) -> str | None:
    """The value at a path of a recipe, as a label; None if the recipe has no value at this path."""
    value: Any = recipe
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("name")
    return None if value is None else label_of(value)


_PATH = "seed"


@dataclass(frozen=True, slots=True)
class SeedAxis:
    """A repeat axis whose alternatives set the seed and nothing else."""

    name: str
    by_label: Mapping[str, int]
    """The seeds by their labels, in the order of the spec."""


def seed_axis(spec: Spec) -> SeedAxis | None:
    """The repeat axis of a spec to which seeds can be added; None if no axis sets only the seed."""
    for name, groups in spec.repeat.items():
        found = {choice.label: seed for group in groups for choice in group.choices if (seed := seed_of(choice)) >= 0}
        if found and len(found) == len({choice.label for group in groups for choice in group.choices}):
            return SeedAxis(name, found)
    return None


def seed_of(choice: Choice) -> int:
    """The seed that an alternative of an axis sets; -1 if it sets anything else."""
    seed = choice.patch.get(_PATH)
    return seed if list(choice.patch) == [_PATH] and type(seed) is int and seed >= 0 else -1
