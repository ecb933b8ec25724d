"""The normalized spec: what a posted document means, with every short form written out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from orchestrator.spec.axes import Axis, Choice, Patch, Prune, Role, Rule, Search, Selection, Slot, SlotRule, When
from orchestrator.spec.layouts import FigureSpec, TableSpec
from workers.contract import Frozen


class Spec(Frozen):
    """A checked spec; its JSON is stored with the sweep, and gives the same plan again."""

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
    """The labels, by axis, of the trials that were taken of the posted spec; all of them when empty."""
    without: When = Field(default_factory=dict, exclude_if=lambda value: not value)
    """The labels whose trials were not; this spec is what was left, and `text` of its sweep holds the rest."""
    select: Selection = Selection()
    slot: Slot = Slot()
    slots: list[SlotRule] = Field(default_factory=list)
    search: Search = Search()
    prune: Prune | None = Field(default=None, exclude_if=lambda value: value is None)
    """What stops the hopeless candidates of a cell early; none: all are trained to their end."""
    tables: dict[str, TableSpec] = Field(default_factory=dict)
    figures: dict[str, FigureSpec] = Field(default_factory=dict)
    fresh: bool = False
    """Whether every training runs anew, though one with its fingerprint may have finished."""

    def axes(self, role: Role) -> dict[str, Axis]:
        """The axes of a role by name, in order."""
        axes: dict[str, Axis] = getattr(self, role)
        return axes

    def patches(self) -> Iterator[Patch]:
        """Everything that is set in its recipes: in the base recipe, by the choices of its axes, and by its rules."""
        yield self.recipe
        for axes in (self.compare, self.tune, self.repeat):
            for groups in axes.values():
                yield from (choice.patch for group in groups for choice in group.choices)
        yield from (rule.patch for rule in self.rules)


_PATH = "seed"


@dataclass(frozen=True, slots=True)
class SeedAxis:
    """A repeat axis whose alternatives set the seed and nothing else."""

    name: str
    by_label: Mapping[str, int]
    """The seeds by their labels, in the order of the spec."""


def seed_axis(spec: Spec) -> SeedAxis | None:
    """The axis to which seeds can be added; none where the spec repeats by no seed."""
    for name, groups in spec.repeat.items():
        found = {choice.label: seed for group in groups for choice in group.choices if (seed := seed_of(choice)) >= 0}
        if found and len(found) == len({choice.label for group in groups for choice in group.choices}):
            return SeedAxis(name, found)
    return None


def seed_of(choice: Choice) -> int:
    """The seed that an alternative sets alone; -1 where it sets anything else."""
    seed = choice.patch.get(_PATH)
    return seed if list(choice.patch) == [_PATH] and type(seed) is int and seed >= 0 else -1
