"""The normalized spec: what a posted document means, with everything short written out."""

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from orchestrator.trial import Slot
from workers.contract import Frozen, Select

Role = Literal["compare", "tune", "repeat"]
ROLES: Final[tuple[Role, ...]] = ("compare", "tune", "repeat")

Patch = dict[str, JsonValue]
"""Values by path: a part with its `name` at its kind (replaces it), anything else at `kind.option` or at a field."""

When = dict[str, list[str]]
"""The labels of other axes under which something applies; it applies everywhere when empty."""

_Source = Annotated[str, Field(exclude=True, repr=False)]
_Sources = Annotated[dict[str, str], Field(exclude=True, repr=False)]


class Choice(Frozen):
    """One alternative of an axis."""

    label: str
    patch: Patch
    source: _Source = ""  # its place in the document, for messages; never stored
    sources: _Sources = Field(default_factory=dict)  # the place of each path of the patch


class Group(Frozen):
    """Alternatives of an axis, and the cells in which they apply."""

    when: When = Field(default_factory=dict)
    choices: list[Choice]
    source: _Source = ""


Axis = list[Group]


class Rule(Frozen):
    """A patch of the cells that several axes decide on."""

    when: When
    patch: Patch
    source: _Source = ""
    sources: _Sources = Field(default_factory=dict)


class Search(Frozen):
    """What proposes trials; `grid` proposes all of them."""

    name: Literal["grid"] = "grid"


Unit = Literal["percent", "fraction", "number"]


class MetricColumn(Frozen):
    """A metric of a table, with its own heading or form of number."""

    metric: str
    label: str | None = Field(default=None, min_length=1, max_length=100)
    unit: Unit | None = None
    decimals: int | None = Field(default=None, ge=0, le=6)


class TableSpec(Frozen):
    """How cells are laid out; rows and columns name axes or fields of the recipe."""

    rows: list[str] = Field(default_factory=list)
    columns: list[str] = Field(default_factory=list)
    metrics: list[str | MetricColumn]
    unit: Unit = "percent"
    decimals: int = Field(default=2, ge=0, le=6)
    bold: Literal["none"] | list[str] | None = None
    """The axes that span a block, of which the best is bold; none: all row axes but the last, and the column axes."""
    show_tuned: bool = False
    std: bool = True
    caption: str | None = Field(default=None, max_length=10_000)
    panels: list[dict[str, list[str]]] | None = None
    """The labels of column axes that stand in each panel, from top to bottom; none: one panel of all."""


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
    select: Select = Select()
    slot: Slot = Slot()
    search: Search = Search()
    tables: dict[str, TableSpec] = Field(default_factory=dict)
    fresh: bool = False
    """Whether every training runs anew, though one with its fingerprint may have finished."""

    def axes(self, role: Role) -> dict[str, Axis]:
        """The axes of a role by name, in order."""
        found: dict[str, Axis] = getattr(self, role)
        return found
