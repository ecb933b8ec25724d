"""What a spec varies and how: recipe, axes, labels, patches, search, selection, early stopping, slots."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from workers.contract import PART_FIELDS, Frozen, Part, Recipe, Select


def label_of(value: Any) -> str:
    """A value as the label of the alternative that it is: 0.001 -> 0.001, 1e-5 -> 1e-05, true -> true."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number_of(label: str) -> float | None:
    """The number that a label is; none where it is none."""
    try:
        return float(label)
    except ValueError:
        return None


def flow(labels: Iterable[str]) -> str:
    """Labels as YAML, ready to copy: `l2`, or `[l2, sec]`."""
    quoted = [label if re.fullmatch(r"[A-Za-z0-9_.@+-]+", label) else json.dumps(label) for label in labels]
    return quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"


class Posted:
    """Narrows the type that it annotates to a form, or by limits of `pydantic.Field`, where validation is strict.

    The plan reads what is posted strictly. What is stored was within the limits of the release that stored it, which
    may have been wider, or have known more words: it is read as it is.
    """

    def __init__(self, form: Any = None, **limits: Any) -> None:
        self._form, self._limits = form, limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = Annotated[source, Field(**self._limits)] if self._form is None else self._form
        return core_schema.lax_or_strict_schema(handler(source), handler.generate_schema(form))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["strict_schema"])


Text = Annotated[str, Posted(max_length=200)]
"""A short text, or the name of an axis."""


Count = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[int, Field(ge=2, le=100)]

LEAST_RACED: Final = 3
"""Repeats: with two, a t has one degree of freedom and no power."""


class Median(Frozen):
    """Stops what at its best is worse than the median of the finished peers at the same evaluation."""

    name: Literal["median"]
    startup: Count = 5
    """Peers that must have finished before anything is stopped."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Evaluations of a training before the first decision on it."""


class Asha(Frozen):
    """Asynchronous successive halving: of those that reach a rung only the best go on."""

    name: Literal["asha"]
    min_evaluations: Count = 1
    """The first rung; each further one is `reduction` times as high."""
    reduction: Factor = 4
    """One in so many goes on."""


class Hyperband(Frozen):
    """Successive halving in brackets, of which some judge later than others."""

    name: Literal["hyperband"]
    min_evaluations: Count = 1
    """The first rung of the first bracket."""
    max_evaluations: Count | None = None
    """The last rung; none: as many as a training has."""
    reduction: Factor = 3
    """One in so many goes on."""

    @model_validator(mode="after")
    def _room(self) -> "Hyperband":
        if self.max_evaluations is not None and self.max_evaluations < self.min_evaluations:
            low, high = self.min_evaluations, self.max_evaluations
            raise ValueError(f"max_evaluations is {high}; expected at least min_evaluations, which is {low}")
        return self


class Wilcoxon(Frozen):
    """Starts no further repeat of what by a signed-rank test over the repeats is worse than the best candidate."""

    name: Literal["wilcoxon"]
    p: float = Field(default=0.1, gt=0, lt=1)
    """What the p-value must be below."""
    startup: Count = 2
    """Repeats that both must have finished before anything is stopped."""


class Race(Frozen):
    """Trains the candidates of a cell repeat by repeat, and no further repeat of what another candidate has beaten."""

    name: Literal["race"]
    level: float = Field(default=0.05, gt=0, le=0.5)
    """How probably the candidate of a cell whose true mean is best may be stopped, over all repeats."""
    first: int = Field(default=3, ge=LEAST_RACED, le=100)
    """Repeats that all candidates are given before anything is stopped."""


Prune = Annotated[Median | Hyperband | Asha | Wilcoxon | Race, Field(discriminator="name")]

PRUNES: Final[Mapping[str, type[Median | Hyperband | Asha | Wilcoxon | Race]]] = {
    "median": Median,
    "hyperband": Hyperband,
    "asha": Asha,
    "wilcoxon": Wilcoxon,
    "race": Race,
}


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


Unit = Literal["percent", "fraction", "number"]


When = dict[str, list[str]]
"""The labels of other axes under which something applies; it applies everywhere when empty."""


def applies(when: Mapping[str, Collection[str]], labels: Mapping[str, str]) -> bool:
    """Whether a point with these labels is one of those that `when` names."""
    return all(labels.get(axis) in wanted for axis, wanted in when.items())


def exclusive(one: When, other: When) -> bool:
    """Whether no point can satisfy both."""
    return any(axis in other and not set(wanted) & set(other[axis]) for axis, wanted in one.items())


Patch = dict[str, JsonValue]
"""Values by path: a part with its `name` at its kind (replaces it), anything else at `kind.option` or at a field."""

Sources = dict[str, str]
"""The place in the document by path of a patch."""

Source = Annotated[str, Field(exclude=True, repr=False)]
"""A place in the document, for messages; never stored."""
PatchSources = Annotated[Sources, Field(exclude=True, repr=False)]


class Rule(Frozen):
    """A patch of the cells that several axes decide on."""

    when: When
    patch: Patch
    source: Source = ""
    sources: PatchSources = Field(default_factory=dict)


def apply(recipe: Mapping[str, Any], patches: Iterable[Mapping[str, Any]]) -> Patch:
    """A new recipe with the patches of one rank applied: first those that replace parts, then those within parts."""
    patched = dict(recipe)
    within: list[tuple[str, Any]] = []
    for patch in patches:
        for path, value in patch.items():
            if "." in path:
                within.append((path, value))
            else:
                patched[path] = value
    for path, value in within:
        field, _, option = path.partition(".")
        part = patched.get(field)
        if isinstance(part, dict):  # else the part is missing, and that is the problem to report
            patched[field] = {**part, option: value}
    return patched


Role = Literal["compare", "tune", "repeat"]
ROLES: Final[tuple[Role, ...]] = ("compare", "tune", "repeat")


class Choice(Frozen):
    """One alternative of an axis."""

    label: str
    patch: Patch
    source: Source = ""
    sources: PatchSources = Field(default_factory=dict)  # the place of each path of the patch


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
    source: Source = ""


Axis = list[Group]


def labels_of(axis: Axis) -> list[str]:
    """The labels of an axis in order."""
    return [choice.label for group in axis for choice in group.choices]


ELSEWHERE: Final[Mapping[str, str]] = {
    "select": "`select` stands at the top of the spec, and the plan copies it into each recipe",
    "version": "`version` stands at the top of the spec",
    "pins": "`pins` are filled in from the catalog",
}
"""Fields of a recipe that a spec does not set there, with the reason."""

FIELDS: Final = tuple(field for field in Recipe.model_fields if field not in ELSEWHERE)
PARTS: Final = (*PART_FIELDS, "validation")
"""The fields that hold a mapping with a `name`."""


def base_recipe() -> Patch:
    """What a recipe holds before anything is posted: the contract's default parts, and no validation."""
    defaults = {name: field.default for name, field in Recipe.model_fields.items()}
    parts: Patch = {name: {"name": part.name} for name, part in defaults.items() if isinstance(part, Part)}
    return parts | {"validation": {"name": "none"}}


def held(path: str, recipe: Mapping[str, Any]) -> str | None:
    """The value that a recipe holds at a path, as a label; none where it holds none."""
    value: Any = recipe
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        value = value.get("name")
    return None if value is None else label_of(value)


def shared(recipes: Sequence[Mapping[str, Any]]) -> Patch:
    """What several recipes hold alike: fields of the same value, and of the same part the options that agree."""
    first, *others = recipes
    return {path: _alike(value, [one[path] for one in others])
            for path, value in first.items()
            if all(path in one and _name(one[path]) == _name(value) for one in others)}  # fmt: skip


def _alike(value: Any, others: Sequence[Any]) -> Any:
    if not isinstance(value, Mapping) or not all(isinstance(one, Mapping) for one in others):
        return value
    return {key: inner for key, inner in value.items() if all(key in one and one[key] == inner for one in others)}


def _name(value: Any) -> Any:
    return value.get("name") if isinstance(value, Mapping) else value


class Selection(Select):
    """The selection of a spec; what concerns the whole sweep enters no recipe."""

    budget: int | None = Field(default=None, ge=1, le=10_000, exclude_if=lambda value: value is None)
    """Candidates of every cell, filled up by learning rates (plan/budget.py); none: as its axes give them."""

    @cached_property
    def of_recipes(self) -> Patch:
        """What each recipe says of it."""
        return self.model_dump(mode="json", exclude={"budget"})


_RESOURCE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
_RESERVED: Final = {
    "cpu": "cpus",
    "cpus": "cpus",
    "gpu": "gpus",
    "gpus": "gpus",
    "memory": "memory_gb",
    "object_store_memory": "memory_gb",
}


class Slot(BaseModel):
    """The resources of one trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpus: float = Field(default=1, gt=0, le=1024)
    gpus: float | Literal["auto"] = "auto"
    """A share of a GPU, or `auto`: one where the cluster has GPUs, none otherwise."""
    memory_gb: float | None = Field(default=None, gt=0)
    resources: dict[str, float] = Field(default_factory=dict, max_length=20, exclude_if=lambda value: not value)
    """Custom resources of the cluster by name, such as `a100: 1`."""
    stall_minutes: float = Field(default=60, gt=0, le=100_000)
    """An attempt that reports nothing for so long is stopped and counts as a failure."""
    retries: int = Field(default=1, ge=0, le=100)
    """How often a training that stalled is tried again, from its last checkpoint."""

    @field_validator("resources")
    @classmethod
    def _custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name, amount in resources.items():
            if own := _RESERVED.get(name.lower()):
                raise ValueError(f"'{name}' is no custom resource; say it as `{own}`")
            if not _RESOURCE_NAME.fullmatch(name) or name.startswith("node:"):
                raise ValueError(
                    f"'{name[:100]}' is no name of a custom resource: letters, digits and _.:- after a letter"
                )
            if not 0.0001 <= amount <= 1_000_000:
                raise ValueError(f"expected 0.0001 to 1,000,000 of '{name}', found {amount:g}")
        return resources


class SlotRule(Frozen):
    """What a slot has otherwise for the trials of some labels; later ones apply over earlier ones."""

    when: When
    slot: dict[str, JsonValue]
    """The fields that it names."""
