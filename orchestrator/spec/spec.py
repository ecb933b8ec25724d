"""The normalized spec: what a posted document means, with everything short written out."""

from functools import cached_property
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from orchestrator.spec.figure import FigureSpec
from orchestrator.spec.prune import Prune
from orchestrator.views.printing import Unit
from orchestrator.views.slot import Slot
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


class Span(Frozen):
    """A range of numbers that an adaptive search draws from, both ends included."""

    low: float
    high: float
    log: bool = False
    step: float | None = Field(default=None, gt=0)
    whole: bool = False
    """Whether only whole numbers are drawn: so where both ends were posted as such."""


class Group(Frozen):
    """Alternatives of an axis, and the cells in which they apply."""

    when: When = Field(default_factory=dict)
    choices: list[Choice]
    """Of a span its two ends, which is what the plan checks; empty where `only` and `without` took all."""
    span: Span | None = None
    source: _Source = ""


Axis = list[Group]


class Rule(Frozen):
    """A patch of the cells that several axes decide on."""

    when: When
    patch: Patch
    source: _Source = ""
    sources: _Sources = Field(default_factory=dict)


class SlotRule(Frozen):
    """What a slot has otherwise for the trials of some labels; later ones apply over earlier ones."""

    when: When
    slot: dict[str, JsonValue]
    """The fields that it names."""


SearchName = Literal["grid", "random", "tpe", "gp", "cmaes", "qmc", "brute_force"]


class Search(Frozen):
    """What proposes candidates; `grid` proposes all of them, the others ask a study of Optuna's, one per cell."""

    name: SearchName = "grid"
    trials: int | None = Field(default=None, ge=1, le=10_000)
    """Candidates of each cell; needed by all but `grid` and `brute_force`."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    parallel: int = Field(default=1, ge=1, le=1_000)
    """Candidates of one cell that may be open at the same time; 1 follows the study's order strictly."""
    reproduce: int = Field(default=0, ge=0, le=1_000)
    """Further seeds with which the best candidate of a cell is trained once its search has ended (MLRC: 10)."""

    @property
    def adaptive(self) -> bool:
        """Whether candidates are proposed one by one."""
        return self.name != "grid"


class Selection(Select):
    """The selection of a spec; what concerns the whole sweep enters no recipe."""

    budget: int | None = Field(default=None, ge=1, le=10_000, exclude_if=lambda value: value is None)
    """Candidates of every cell, filled up by learning rates (plan/budget.py); none: as its axes give them."""

    @cached_property
    def of_recipes(self) -> Patch:
        """What each recipe says of it."""
        return self.model_dump(mode="json", exclude={"budget"})


MOST_METRICS: Final = 200
"""Metrics of a table."""

Name = Annotated[str, Field(max_length=200)]


class MetricColumn(Frozen):
    """A metric of a table, with its own heading or form of number."""

    metric: Name
    split: Literal["test", "test_separated", "validation", "train"] = "test"
    """`test_separated`: the mean over the models of a cross-validation, where `test` is of all of them together."""
    label: str | None = Field(default=None, max_length=100)
    unit: Unit | None = None
    decimals: int | None = Field(default=None, ge=0, le=6)
    when: When = Field(default_factory=dict)
    """The labels of column axes under which this column stands; it stands everywhere when empty."""
    delta: dict[str, str] | None = Field(default=None, min_length=1)
    """The difference to another cell in place of the value: to the one that has these labels, and the others alike."""
    signed: bool = False
    """Whether a number above zero is printed with its plus."""


class Deviation(Frozen):
    """The form of the standard deviations of a table where it is not that of the means."""

    unit: Unit | None = None
    decimals: int | None = Field(default=None, ge=0, le=6)


Text = Annotated[str, Field(max_length=200)]


class TableSpec(Frozen):
    """How cells are laid out; rows and columns name axes or fields of the recipe."""

    published: Name | None = None
    """The printed table that its cells are compared with."""
    rows: list[Name] = Field(default_factory=list, max_length=40)
    columns: list[Name] = Field(default_factory=list, max_length=40)
    metrics: list[Name | MetricColumn] = Field(max_length=MOST_METRICS)
    unit: Unit = "percent"
    decimals: int = Field(default=2, ge=0, le=6)
    bold: Literal["none"] | list[Name] | None = None
    """The axes that span a block, of which the best is bold; none: the row axes before the last that has headings, and
    the column axes."""
    labels: dict[str, dict[str, Text]] = Field(default_factory=dict)
    """What is printed for the labels of an axis; `{path}` stands for the label of the cell on another axis."""
    titles: dict[str, Text | None] = Field(default_factory=dict)
    """The headings of axes; null: the axis tells rows or columns apart without headings of its own."""
    show_tuned: bool = False
    std: bool | Deviation = True
    """Whether a spread stands after each number, and in which form."""
    spread: Literal["std", "se", "ci95", "none"] | None = None
    """The sample deviation, the standard error or half the 95 % Student-t interval; none: `std` of a mean."""
    center: Literal["mean", "median", "best"] = "mean"
    """What is printed for the runs of a cell; tests and verdicts take their means."""
    counts: Literal["differ", "always", "never"] = "differ"
    """Where the number of runs stands beside a number: where it is not the usual one, everywhere, or nowhere."""
    against: dict[str, str] | None = Field(default=None, min_length=1)
    """The labels of the baseline with which every other cell is compared run by run."""
    test: Literal["t", "wilcoxon"] = "t"
    """The paired test of those comparisons."""
    missing: str = Field(default="–", max_length=40)
    """What is printed where there is no number and never will be."""
    diverged: str = Field(default="diverged", min_length=1, max_length=100)
    """What is printed across the metrics of a cell whose every candidate diverged."""
    caption: str | None = Field(default=None, max_length=10_000)
    selections: list[Literal["validation", "test"]] = Field(default_factory=list, max_length=2)
    """On which splits its numbers are selected, beside one another; empty: on the one that `select` says."""
    flattery: bool = False
    """Whether it also shows by how much selection on test is above that on validation."""
    panels: list[dict[str, list[str]]] | None = Field(default=None, max_length=200)
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
        found: dict[str, Axis] = getattr(self, role)
        return found
