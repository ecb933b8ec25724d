"""The spec as it is posted: every form that a document may have. `plan.read` turns it into the normalized `Spec`."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from orchestrator.spec.fields import (
    AMONG_GROUPS,
    KIND_OF_ALTERNATIVE,
    KIND_OF_AXIS,
    KIND_OF_GROUP,
    NO_CONDITION,
    NO_EMPTY_AXIS,
    SCALAR,
    UNION,
    Lenient,
    Posted,
    When,
    at_most,
    expected,
    printable,
    refuse,
    some,
    spelt,
)
from orchestrator.spec.layouts import FigureSpec, TableSpec
from orchestrator.spec.spec import PRUNES, Prune, PruneName, Search, SearchName, Selection, Slot
from workers.catalog import shown, suggestion

LONGEST_LABEL: Final = 100
MOST_ALTERNATIVES: Final = 20_000
"""Alternatives of all axes together."""
_MOST_AXES: Final = 40
_MOST_RULES: Final = 1_000
_MOST_TABLES: Final = 100
_MOST_FIGURES: Final = 50

FROM_CATALOG: Final = "from-catalog"
"""Marks the places of the JSON schema that the catalog fills: the value of a path, or values by path."""
Value = Annotated[JsonValue, WithJsonSchema({FROM_CATALOG: "value"})]
PostedPatch = Annotated[
    dict[str, JsonValue],
    Field(min_length=1),
    expected("a mapping from paths to values"),
    WithJsonSchema({FROM_CATALOG: "patch"}),
]


# Axes


class PostedChoice(Posted):
    """An alternative of an axis as it is posted: a label and the values that it sets."""

    if_missing: ClassVar = {
        "label": "expected a text that names the alternative, found nothing",
        "patch": "expected a mapping from paths to values, found nothing",
    }

    label: Annotated[str, printable(LONGEST_LABEL, "a label of "), SCALAR]
    patch: PostedPatch


Alternative = Annotated[
    Annotated[PostedChoice, Tag(f"{UNION}labelled")] | Annotated[Value, Tag(f"{UNION}value")],
    KIND_OF_ALTERNATIVE,
]
Alternatives = Annotated[list[Lenient[Alternative]], Field(min_length=1)]


class PostedGroup(Posted):
    """Alternatives of an axis as they are posted, with the condition under which they apply."""

    if_missing: ClassVar = {"values": "expected a list of at least one alternative, found nothing"}

    values: Annotated[Alternatives, some("alternative")]
    when: Lenient[When] = Field(default_factory=dict)


Number = Annotated[int | float, Field(allow_inf_nan=False), expected("a finite number")]


class PostedRange(Posted):
    """A range as it is posted: an adaptive search draws numbers between `low` and `high`, both included."""

    if_missing: ClassVar = dict.fromkeys(("low", "high"), "is missing; expected a finite number")

    low: Number
    high: Number
    log: bool = False
    step: Annotated[Annotated[int | float, Field(gt=0, allow_inf_nan=False)] | None, expected("a number above 0")] = (
        None
    )
    when: Lenient[When] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _sound(self) -> "PostedRange":
        low, high, step = self.low, self.high, self.step
        if low >= high:
            raise refuse(f"`low` must be below `high`, found {shown(low)} and {shown(high)}")
        if self.log and low <= 0:
            raise refuse(f"the `low` of a logarithmic range must be above 0, found {shown(low)}", low, "low")
        if self.log and step is not None:
            raise refuse("a logarithmic range cannot have a `step`; remove it, or `log`", step, "step")
        if step is not None and step > high - low:
            raise refuse(f"expected a step of at most {shown(high - low)}, found {shown(step)}", step, "step")
        return self


_Group = Annotated[
    Annotated[PostedGroup, Tag(f"{UNION}group")] | Annotated[PostedRange, Tag(f"{UNION}range")],
    KIND_OF_GROUP,
    AMONG_GROUPS,
]
PostedAxis = Annotated[
    Annotated[Alternatives, Tag(f"{UNION}alternatives")]
    | Annotated[list[Lenient[_Group]], Field(min_length=1), Tag(f"{UNION}groups")]
    | Annotated[PostedGroup, Tag(f"{UNION}group")]
    | Annotated[PostedRange, Tag(f"{UNION}range")],
    KIND_OF_AXIS,
    NO_EMPTY_AXIS,
]


_AXIS_NAME: Final = spelt(
    lambda name: bool(name.strip()) and name.isprintable() and len(name) <= LONGEST_LABEL,
    f"expected an axis' name of 1 to {LONGEST_LABEL} printable characters",
)
PostedAxes = Annotated[dict[Annotated[str, _AXIS_NAME], Lenient[PostedAxis]], at_most(_MOST_AXES, "axes")]


# The other blocks


class PostedRule(Posted):
    """A rule as it is posted: a patch for the cells with certain labels on several axes."""

    if_missing: ClassVar = {"when": NO_CONDITION, "patch": "expected a mapping from paths to values, found nothing"}

    when: Lenient[When]
    patch: PostedPatch


class PostedSlotRule(Slot):
    """A slot rule as it is posted: slot fields for trials with certain labels."""

    if_missing: ClassVar = {"when": NO_CONDITION}

    when: Lenient[When]

    @model_validator(mode="after")
    def _names_something(self) -> "PostedSlotRule":
        if self.model_fields_set == {"when"}:
            raise refuse(f"the rule sets no field of the slot; {suggestion('', Slot.model_fields)}")
        return self


def _by_name(value: Any) -> Any:
    """A mapping with `name` for a bare name."""
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping):
        raise refuse(f"expected a name or a mapping with `name`, found {shown(value)}", value)
    return value


def _prune(value: Any, validate: Any, info: ValidationInfo) -> Any:
    name = value.get("name")
    if name is None:
        raise refuse(f"is missing, so the pruning rule is unknown; {suggestion('', PRUNES)}", value, "name")
    if not isinstance(name, str) or name not in PRUNES:
        raise refuse(f"there is no pruning rule {shown(name)}; {suggestion(str(name), PRUNES)}", name, "name")
    return PRUNES[name].model_validate(value, strict=True, context=info.context)


NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""The name of a table or of a figure."""


_Name = Annotated[
    str,
    Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"}),
    spelt(lambda name: NAME.fullmatch(name) is not None, "expected a name of 1 to 64 letters, digits, '-' and '_'"),
]
_NO_OTHER_NAMES: Final = Field(json_schema_extra={"additionalProperties": False})


_PostedPrune = Annotated[
    Prune, WrapValidator(_prune), BeforeValidator(_by_name, json_schema_input_type=PruneName | Prune)
]
_Tables = Annotated[dict[_Name, Lenient[TableSpec]], at_most(_MOST_TABLES, "tables"), _NO_OTHER_NAMES]
_Figures = Annotated[dict[_Name, Lenient[FigureSpec]], at_most(_MOST_FIGURES, "figures"), _NO_OTHER_NAMES]


class PostedSpec(Posted):
    """A spec as it is posted, before short forms are expanded; a key whose value is null is left out."""

    if_missing: ClassVar = {
        "version": "is missing; write `version: 1`",
        "name": "is missing; write `name: ` and 1 to 100 printable characters",
        "recipe": "is missing; it holds what all trainings share, such as `dataset` and `iterations`",
    }

    version: Lenient[Annotated[Literal[1], expected("1")]]
    name: Lenient[
        Annotated[str, Field(min_length=1, max_length=100), printable(100), expected("1 to 100 printable characters")]
    ]
    description: Lenient[Annotated[str, Field(max_length=10_000), expected("a text of at most 10,000 characters")]] = ""
    recipe: Lenient[Annotated[dict[str, JsonValue], WithJsonSchema({FROM_CATALOG: "recipe"})]]
    """What all trainings have in common; axes and rules change it."""
    compare: Lenient[PostedAxes] = Field(default_factory=dict)
    """Axes of the table: one cell per combination."""
    tune: Lenient[PostedAxes] = Field(default_factory=dict)
    """Axes that compete within a cell: the best candidate is shown."""
    repeat: Lenient[PostedAxes] = Field(default_factory=dict)
    """Axes that are averaged, such as the seed."""
    rules: Lenient[Annotated[list[Lenient[PostedRule]], at_most(_MOST_RULES, "rules")]] = Field(default_factory=list)
    """Changes that depend on several compare axes; applied after `compare` and before `tune`."""
    only: Lenient[When] = Field(default_factory=dict)
    """Take a subset: the trials that have one of these labels on every axis named here."""
    without: Lenient[When] = Field(default_factory=dict)
    """Take a subset: the trials that have none of these labels."""
    select: Lenient[Selection] = Selection()
    """The metric and the split that choose the best checkpoint and the best candidate."""
    slot: Lenient[Slot] = Slot()
    """The resources of one trial."""
    slots: Lenient[Annotated[list[Lenient[PostedSlotRule]], at_most(_MOST_RULES, "entries")]] = Field(
        default_factory=list
    )
    """Fields of the slot for some labels of axes; later entries override earlier entries."""
    search: Lenient[Annotated[Search, BeforeValidator(_by_name, json_schema_input_type=SearchName | Search)]] = Search()
    """What proposes candidates: the whole grid, or an Optuna study in each cell."""
    prune: Lenient[_PostedPrune] | None = None
    """The rule that stops candidates of a cell early."""
    tables: Lenient[_Tables] = Field(default_factory=dict)
    """How cells are laid out; without it there is one table, main."""
    figures: Lenient[_Figures] = Field(default_factory=dict)
    """Figures of cells, of training curves, and of figure data that trainings keep."""
    fresh: Lenient[bool] = False
    """Train everything again, even if a training with the same fingerprint has finished."""
