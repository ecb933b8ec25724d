"""The normalized spec: what a posted document means, with everything short written out."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from orchestrator.spec.axis import Axis, Role
from orchestrator.spec.figure import FigureSpec
from orchestrator.spec.patch import Patch, Rule
from orchestrator.spec.prune import Prune
from orchestrator.spec.search import Search
from orchestrator.spec.selection import Selection
from orchestrator.spec.slot import Slot, SlotRule
from orchestrator.spec.table import TableSpec
from orchestrator.spec.when import When
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
