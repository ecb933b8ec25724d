"""The normalized spec: what a posted document means, with every short form written out."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from orchestrator.spec.fields import Posted, When, expected, label_of
from orchestrator.spec.layouts import FigureSpec, TableSpec
from workers.catalog import shown
from workers.contract import PART_FIELDS, Frozen, Recipe, Select

Count = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[int, Field(ge=2, le=100)]

LEAST_RACED: Final = 3
"""The fewest repeats of a race: a t-test of two has one degree of freedom and no power."""


class Pruning(Posted):
    """A rule that stops candidates or trainings early, as the `prune` block of a spec."""

    @classmethod
    def unknown(cls, key: str) -> str:
        """The message for an unknown option of a pruning rule; it names the rules that have this option."""
        owners = [name for name, rule in PRUNES.items() if key in rule.model_fields]
        own = ", ".join(f"`{option}`" for option in cls.model_fields if option != "name")
        name = get_args(cls.model_fields["name"].annotation)[0]
        whose = f"is an option of {' and '.join(owners)}; '{name}' takes {own}"
        return whose if owners else f"{super().unknown(key)}; '{name}' takes {own}"


class Median(Pruning):
    """Prunes by the median: stops a training that scores worse than most finished trainings at the same evaluation."""

    name: Literal["median"]
    startup: Count = 5
    """Peers that must have finished before anything is stopped."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Evaluations of a training before the first decision on it."""


class Asha(Pruning):
    """Asynchronous successive halving: of the trainings that reach a rung, only the best continue."""

    name: Literal["asha"]
    min_evaluations: Count = 1
    """The first rung, in evaluations; each further rung is `reduction` times as high."""
    reduction: Factor = 4
    """A rung keeps one of this many candidates."""


class Hyperband(Pruning):
    """Successive halving in brackets that start to judge at different rungs."""

    name: Literal["hyperband"]
    min_evaluations: Count = 1
    """The first rung of the first bracket, in evaluations."""
    max_evaluations: Count | None = None
    """The last rung; `None` means as many as a training has."""
    reduction: Factor = 3
    """A rung keeps one of this many candidates."""

    @model_validator(mode="after")
    def _room(self) -> "Hyperband":
        if self.max_evaluations is not None and self.max_evaluations < self.min_evaluations:
            low, high = self.min_evaluations, self.max_evaluations
            raise ValueError(f"max_evaluations is {high}; expected at least min_evaluations, which is {low}")
        return self


class Wilcoxon(Pruning):
    """Stops a candidate that a signed-rank test over the repeats finds worse than the best candidate."""

    name: Literal["wilcoxon"]
    p: float = Field(default=0.1, gt=0, lt=1)
    """A candidate stops when its p-value is below this."""
    startup: Count = 2
    """Repeats that both must have finished before anything is stopped."""


class Race(Pruning):
    """Trains the candidates of a cell repeat by repeat, and drops a candidate that another candidate has beaten."""

    name: Literal["race"]
    level: float = Field(default=0.05, gt=0, le=0.5)
    """The highest probability, over all repeats, that the truly best candidate of a cell is stopped."""
    first: int = Field(default=3, ge=LEAST_RACED, le=100)
    """Repeats that every candidate gets before any candidate is stopped."""


Prune = Annotated[Median | Hyperband | Asha | Wilcoxon | Race, Field(discriminator="name")]

PruneName = Literal["median", "hyperband", "asha", "wilcoxon", "race"]
PRUNES: Final[Mapping[str, type[Median | Hyperband | Asha | Wilcoxon | Race]]] = {
    "median": Median,
    "hyperband": Hyperband,
    "asha": Asha,
    "wilcoxon": Wilcoxon,
    "race": Race,
}


SearchName = Literal["grid", "random", "tpe", "gp", "cmaes", "qmc", "brute_force"]
SEARCHES: Final[tuple[str, ...]] = get_args(SearchName)


class Search(Posted):
    """How the candidates of a cell are found: `grid` trains all; every other search is an Optuna study per cell."""

    nouns: ClassVar = {"name": "search"}

    name: SearchName = "grid"
    trials: int | None = Field(default=None, ge=1, le=10_000)
    """Candidates of each cell; needed by all but `grid` and `brute_force`."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    parallel: int = Field(default=1, ge=1, le=1_000)
    """Candidates of a cell that may run at the same time; 1 follows the order of the study strictly."""
    reproduce: int = Field(default=0, ge=0, le=1_000)
    """Further seeds for the best candidate of a cell once its search has ended (MLRC: 10)."""

    @property
    def adaptive(self) -> bool:
        """Whether the search chooses each candidate from the results of earlier candidates."""
        return self.name != "grid"


def applies(when: Mapping[str, Collection[str]], labels: Mapping[str, str]) -> bool:
    """Whether the labels of a point satisfy the condition `when`."""
    return all(labels.get(axis) in wanted for axis, wanted in when.items())


Patch = dict[str, JsonValue]
"""Values by path: a part with its `name` at its kind (replaces it), anything else at `kind.option` or at a field."""

Sources = dict[str, str]
"""The place in the document by path of a patch."""

Source = Annotated[str, Field(exclude=True, repr=False)]
"""A place in the document, for messages; never stored."""
PatchSources = Annotated[Sources, Field(exclude=True, repr=False)]


class Rule(Frozen):
    """A patch that the `rules` of a spec apply to the cells with certain labels on several axes."""

    when: When
    patch: Patch
    source: Source = ""
    sources: PatchSources = Field(default_factory=dict)


def apply(recipe: Mapping[str, Any], patches: Iterable[Mapping[str, Any]]) -> Patch:
    """A copy of a recipe with patches applied: first those that replace a part, then those of its options, then those
    of the options of a part within it.
    """
    patched = dict(recipe)
    within: list[tuple[str, Any]] = []
    for patch in patches:
        for path, value in patch.items():
            if "." in path:
                within.append((path, value))
            else:
                patched[path] = value
    for path, value in sorted(within, key=lambda patch: patch[0].count(".")):
        field, *steps = path.split(".")
        patched[field] = _with(patched.get(field), steps, value)
    return patched


def _with(part: JsonValue, steps: Sequence[str], value: JsonValue) -> JsonValue:
    """A copy of a part, or of its name, with an option set; without a part itself, since that is the problem to
    report.
    """
    if not steps:
        return value
    part = {"name": part} if isinstance(part, str) else part
    return {**part, steps[0]: _with(part.get(steps[0]), steps[1:], value)} if isinstance(part, dict) else part


Role = Literal["compare", "tune", "repeat"]
ROLES: Final[tuple[Role, ...]] = ("compare", "tune", "repeat")


class Choice(Frozen):
    """One alternative of an axis: its label and the patch that it applies to the recipe."""

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
    """Whether only whole numbers are drawn, which is so if all numbers of the range are whole."""

    def drawn(self, value: float) -> float | int:
        """Rounds a number that the search has drawn: to a whole number, or to six digits so that tables can print
        it.
        """
        if self.whole:
            return round(value)
        return min(max(float(f"{value:.6g}"), self.low), self.high)


class Group(Frozen):
    """Alternatives of an axis, and the condition under which they apply."""

    when: When = Field(default_factory=dict)
    choices: list[Choice]
    """Of a span its two ends, which is what the plan checks; empty where `only` and `without` took all."""
    span: Span | None = None
    source: Source = ""


Axis = list[Group]


def labels_of(axis: Axis) -> list[str]:
    """The labels of all alternatives of an axis, in the order of the spec."""
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


def shared(recipes: Sequence[Mapping[str, Any]]) -> Patch:
    """The fields that several recipes have in common: equal values, and the equal options of a part that all use."""
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


class Selection(Posted, Select):
    """How the best checkpoint of a training and the best candidate of a cell are selected."""

    budget: int | None = Field(default=None, ge=1, le=10_000, exclude_if=lambda value: value is None)
    """Candidates of every cell; learning rates are added until it has that many. `None` means those of its axes."""

    @cached_property
    def of_recipes(self) -> Patch:
        """The fields of the selection that are stored in each recipe: all but the budget."""
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


def _share(gpus: float | str) -> float | str:
    """A number of GPUs as it is meant: 0.33 and 0.334 are a third; raises ValueError where it fills no GPU."""
    if isinstance(gpus, str) or (0 <= gpus <= 1024 and float(gpus).is_integer()):
        return gpus
    if 0.001 <= gpus < 1 and 0.98 <= gpus * round(1 / gpus) <= 1.005:
        return 1 / round(1 / gpus)
    if not 0.001 <= gpus <= 1024:
        right = "0, a whole number up to 1,024, or a share that fills a GPU, such as 0.5 or 0.25"
    elif gpus > 1:
        right = f"a whole number such as {int(gpus)} or {int(gpus) + 1}, or a share that fills a GPU, such as 0.5"
    else:
        parts = int(1 / gpus)
        right = f"a share that fills a GPU (1/k), such as {1 / parts:.4g} or {1 / (parts + 1):.4g}"
    raise ValueError(f"expected {right}; found {shown(gpus)}")


_GPUS: Final = "a share of a GPU such as 0.5, a whole number of GPUs, or 'auto'"


class Slot(Posted):
    """The resources that one trial reserves, such as CPUs, GPUs and memory."""

    cpus: float = Field(default=1, gt=0, le=1024)
    gpus: Annotated[Annotated[float | Literal["auto"], expected(_GPUS)], AfterValidator(_share)] = "auto"
    """GPUs or a share of a GPU; `auto` means one GPU if the cluster has any."""
    memory_gb: float | None = Field(default=None, gt=0)
    resources: dict[str, float] = Field(default_factory=dict, max_length=20, exclude_if=lambda value: not value)
    """Custom resources of the cluster by name, such as `a100: 1`."""
    stall_minutes: float = Field(default=60, gt=0, le=100_000)
    """Minutes without a report after which an attempt is stopped and counts as failed."""
    retries: int = Field(default=1, ge=0, le=100)
    """How often a training that stalled is tried again from its last checkpoint."""

    @field_validator("resources")
    @classmethod
    def _custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name, amount in resources.items():
            if own := _RESERVED.get(name.lower()):
                raise ValueError(f"'{name}' is no custom resource; write it as the slot field `{own}`")
            if not _RESOURCE_NAME.fullmatch(name) or name.startswith("node:"):
                raise ValueError(
                    f"'{name[:100]}' cannot name a custom resource; expected a letter, then letters, digits and _.:-"
                )
            if not 0.0001 <= amount <= 1_000_000:
                raise ValueError(f"expected 0.0001 to 1,000,000 of '{name}', found {amount:g}")
        return resources


class SlotRule(Frozen):
    """Slot fields that apply only to trials with certain labels; later rules override earlier rules."""

    when: When
    slot: dict[str, JsonValue]
    """The fields that it names."""


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
