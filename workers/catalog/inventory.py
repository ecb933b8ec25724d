"""What the catalog holds: parts with their hyper-parameters and ranges, and what is known of a recipe's metrics."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeVar

from pydantic import Field, JsonValue

from workers.catalog.wording import listed, near, shown, unknown
from workers.contract import DEFAULT_TASK, PART_FIELDS, PML, Frozen, Part, Recipe, Select

MARKS: Final[Mapping[str, tuple[str, str, Callable[[float, float], bool]]]] = {
    "Gt": ("gt", "above", operator.gt),
    "Ge": ("ge", "at least", operator.ge),
    "Lt": ("lt", "below", operator.lt),
    "Le": ("le", "at most", operator.le),
}
"""The field of `Bounds`, the words, and the comparison for each class of annotated-types."""
LONGEST_TEXT: Final = 1_000
"""The maximal length of a hyper-parameter that is a text, such as a path."""
LONGEST_LIST: Final = 1_000
"""The maximal length of a hyper-parameter that is a list."""

_PLAIN: Final = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text",
    "ints": "a list of whole numbers", "floats": "a list of numbers", "strs": "a list of texts",
}  # fmt: skip
_LARGEST: Final = 1.7976931348623157e308  # of float64

_USUAL_NAMES: Final = {"r": "recall", "rec": "recall", "acc": "accuracy"}  # abbreviations in papers, such as R@1
EMBEDDINGS: Final = "embeddings"
"""The default of a metric's fact `reads`."""

Counts = Mapping[str, Mapping[str, Mapping[str, int]]]
"""The numbers of classes and images of each split that nodes found, by the key of the data set's need."""


Selecting = TypeVar("Selecting", bound=Select)


class Bounds(Frozen):
    """The allowed range of a numeric hyper-parameter; an end that is None is unlimited."""

    gt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    ge: float | None = Field(default=None, exclude_if=lambda value: value is None)
    lt: float | None = Field(default=None, exclude_if=lambda value: value is None)
    le: float | None = Field(default=None, exclude_if=lambda value: value is None)

    def hold(self, value: float) -> bool:
        ends = [(holds, getattr(self, field)) for field, _, holds in MARKS.values()]
        return all(end is None or holds(value, end) for holds, end in ends)

    @property
    def words(self) -> str:
        """The range in words for messages, such as `above 0, at most 1`; empty without limits."""
        ends = [(words, getattr(self, field)) for field, words, _ in MARKS.values()]
        return ", ".join(f"{words} {_number(end)}" for words, end in ends if end is not None)


class Parameter(Frozen):
    """A hyper-parameter of a part: a keyword-only argument of its `__init__`."""

    name: str
    type: Literal["int", "float", "bool", "str", "literal", "ints", "floats", "strs", "part"]
    optional: bool = False
    required: bool = False
    default: JsonValue = None
    choices: list[JsonValue] | None = None
    """The allowed values; the allowed items of a list of texts, each at most once; or values besides whole numbers."""
    kind: str = Field(default="", exclude_if=lambda value: not value)
    """The kind of part, if the hyper-parameter is a part."""
    bounds: str = Field(default="", exclude_if=lambda value: not value)
    """The allowed range in words, such as `above 0, at most 1`; empty if there is no limit."""
    limits: Bounds = Field(default=Bounds(), exclude_if=lambda value: value == Bounds())
    """The allowed range of the number, or of each number of a list."""

    @property
    def expected(self) -> str:
        """The allowed values of the hyper-parameter, in words for messages."""
        words = {**_PLAIN, "literal": f"one of {listed(self.choices or [])}", "part": f"a {self.kind}"}[self.type]
        if self.choices and self.type in {"strs", "int"}:
            words = f"{'a list of some' if self.type == 'strs' else f'{words}, or one'} of {listed(self.choices)}"
        return f"{words}, or null" if self.optional else words

    def cast(self, value: Any) -> JsonValue:
        """Converts `value` to the hyper-parameter's type, so that equal meanings are equal; raises ValueError.

        Of a part only the form is checked; its hyper-parameters are checked against its own entry.
        """
        if value is None and self.optional:
            return None
        if self.type == "int" and isinstance(value, str) and value in (self.choices or ()):
            return value
        if self.type == "part":
            return self._cast_part(value)
        if self.type in {"ints", "floats", "strs"}:
            return [*self._cast_all(value)]
        if self.type == "str" and isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise ValueError(f"expected a text of at most {LONGEST_TEXT:,} characters, found {len(value):,}")
        return self._cast_one(self.type, value)

    def _cast_all(self, value: Any) -> Iterator[JsonValue]:
        if not isinstance(value, list | tuple):
            self._refuse(value)
        if len(value) > LONGEST_LIST:
            what = "texts" if self.type == "strs" else "numbers"
            raise ValueError(f"expected at most {LONGEST_LIST:,} {what}, found {len(value):,}")
        for place, item in enumerate(value):
            if isinstance(item, str) and len(item) > LONGEST_TEXT:
                raise ValueError(f"expected texts of at most {LONGEST_TEXT:,} characters, found {len(item):,}")
            if self.choices is not None and item in value[:place]:
                raise ValueError(f"expected each once, found {shown(item)} twice")
            yield self._cast_one("literal" if self.choices else self.type[:-1], item)

    def _cast_one(self, type_: str, value: Any) -> JsonValue:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        cast: JsonValue = None
        if type_ == "literal":
            equal = [choice for choice in self.choices or [] if choice == value]
            cast = next((choice for choice in equal if isinstance(choice, bool) == isinstance(value, bool)), None)
        elif type_ == "int" and number and (isinstance(value, int) or value.is_integer()):
            cast = int(value)
        elif type_ == "float" and number and abs(value) <= _LARGEST:
            cast = float(value) + 0.0  # turns -0.0 into 0.0
        elif (type_ == "bool" and isinstance(value, bool)) or (type_ == "str" and isinstance(value, str)):
            cast = value
        if cast is None:
            self._refuse(value)
        if type_ in {"int", "float"} and number and not self.limits.hold(value):
            what = (
                f"{_PLAIN[type_]} {'of ' if self.bounds.startswith('at ') else ''}{self.bounds.replace(', ', ' and ')}"
            )
            raise ValueError(f"expected {what}{', or null' if self.optional else ''}; found {shown(value)}")
        return cast

    def _cast_part(self, value: Any) -> JsonValue:
        if not isinstance(value, str | Mapping | Part):
            self._refuse(value)
        try:
            part = Part.model_validate(dict(value) if isinstance(value, Mapping) else value)
            return part.model_dump(mode="json")
        except ValueError:  # it is no part, or it is nested too deeply
            named = f"a {self.kind} by its name, or a mapping with `name` and its hyper-parameters"
            raise ValueError(f"expected {named}; found {shown(value)}") from None

    def _refuse(self, value: Any) -> NoReturn:
        hint = "; write it without quotes" if self.type in {"int", "float"} and _reads_as_number(value) else ""
        raise ValueError(f"expected {self.expected}, found {shown(value)}{hint}")


class Entry(Frozen):
    """The catalog's description of a part, read from its source."""

    kind: str
    name: str
    label: str
    paper: str | None = None
    version: int = 1
    doc: str = ""
    formula: str | None = Field(default=None, exclude_if=lambda value: value is None)  # the formula in LaTeX
    parameters: list[Parameter] = Field(default_factory=list)
    inputs: list[str] = Field(default_factory=list)
    optional_inputs: list[str] = Field(default_factory=list, exclude_if=lambda value: not value)
    """The `inputs` whose type is `X | None`."""
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    own: bool = False  # whether it comes from the folder of own parts
    code: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The hash of the source of an own part, including the modules of the folder that it uses."""

    @property
    def added(self) -> list[str]:
        """The hyper-parameters that were added without changing numbers; completed recipes omit them at their
        default.
        """
        return self.fact_names("added")

    def fact_names(self, fact: str) -> list[str]:
        """The names in a declared fact of the part, which is a list."""
        names = self.facts.get(fact)
        return [str(name) for name in names] if isinstance(names, list) else []

    def parameter(self, name: str) -> Parameter | None:
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def filled(self, options: Mapping[str, Any]) -> dict[str, JsonValue]:
        """The options of the part in the types of its hyper-parameters, completed with defaults.

        Raises ValueError for an invalid value, an unknown name, or a missing required hyper-parameter.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if strange := [name for name in options if name not in known]:
            raise ValueError(f"{self.kind} {self.name!r} has no hyper-parameter {listed(strange)}")
        values: dict[str, JsonValue] = {}
        for name, parameter in known.items():
            if name not in options and parameter.required:
                missing = [other for other in known if known[other].required and other not in options]
                raise ValueError(f"{self.kind} {self.name!r} needs the hyper-parameter {listed(missing)}")
            try:
                values[name] = parameter.cast(options[name]) if name in options else parameter.default
            except ValueError as error:
                raise ValueError(f"{self.kind} {self.name!r}: {name}: {error}") from error
        return values


def _number(end: float) -> str:
    if end and (halves := end / math.pi * 2) in {1.0, 2.0, 4.0}:
        return {1.0: "π/2", 2.0: "π", 4.0: "2π"}[halves]
    return f"{end:,.10g}"


def _reads_as_number(value: Any) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


class Catalog(Frozen):
    """The parts that recipes may name, ordered by kind and name."""

    entries: list[Entry]
    published: dict[str, str] = Field(default_factory=dict)
    """The files of the folder `published` of own parts by name: a paper's printed tables (docs/your-paper.md)."""
    counts: Counts = Field(default_factory=dict, exclude=True)

    def counting(self, counts: Counts) -> "Catalog":
        """A copy of the catalog with numbers of classes and images for data sets that declare none."""
        return Catalog(entries=self.entries, published=self.published, counts=counts)

    def refresh(self) -> None:
        """Does nothing, since this catalog never changes; a LiveCatalog reads own parts again."""

    @property
    def changes(self) -> int:
        return 0

    @property
    def folder(self) -> Path | None:
        """The folder of own parts, known to a LiveCatalog only."""
        return None

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Entry]:
        return {(entry.kind, entry.name): entry for entry in self.entries}

    def get(self, kind: str, name: str) -> Entry | None:
        return self._by_name.get((kind, name))

    def names(self, kind: str) -> list[str]:
        return [entry.name for entry in self.of(kind)]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == kind]

    def metrics(self, dataset: Part | str | None, task: Part | str = DEFAULT_TASK) -> list[str]:
        """The metrics that every training of a task computes.

        These are the metrics that the data set declares and the task can compute, or else those of the task. The list
        is empty if the task or the data set is unknown.
        """
        known = self.get("task", task if isinstance(task, str) else task.name)
        usual = _names(known)
        if dataset is None or known is None:
            return usual
        entry = self.get("dataset", dataset if isinstance(dataset, str) else dataset.name)
        return [name for name in _names(entry) if self.read_by(name, known)] or usual if entry else []

    def read_by(self, metric: str, task: Entry) -> bool:
        """Whether a task evaluates what the metric reads; true for a metric that does not exist."""
        entry = self.get("metric", parse_metric(metric)[0])
        return entry is None or entry.facts.get("reads", EMBEDDINGS) in given(task)

    def at_the_end(self, metric: str, task: Entry) -> bool:
        """Whether a task measures a metric, with any k, only at the end of a training."""
        file = parse_metric(metric)[0]
        entry, ended = self.get("metric", file), {parse_metric(name)[0] for name in task.fact_names("ended")}
        return file in ended or (entry is not None and entry.facts.get("needs") in ended)


def given(task: Entry) -> list[str]:
    """What a task evaluates for its metrics, such as embeddings or pairs."""
    reads = task.facts.get("reads", EMBEDDINGS)
    return task.fact_names("reads") if isinstance(reads, list) else [str(reads)]


def selected(select: Selecting, task: Entry) -> Selecting:
    """The selection of a recipe, with its task's metric and split as defaults."""
    preset = {"metric": task.facts.get("selects"), "split": task.facts.get("split")}
    unset = {name: fact for name, fact in preset.items() if fact is not None and name not in select.model_fields_set}
    return select.model_copy(update=unset) if unset else select


def _names(entry: Entry | None) -> list[str]:
    return entry.fact_names("metrics") if entry else []


def parse_metric(name: str) -> tuple[str, str | None]:
    """Splits the name of a metric into its file name and `k`: `recall@1` is ("recall", "1"), `nmi` is ("nmi", None)."""
    file, at, k = name.partition("@")
    return file, k if at else None


def metric_entry(name: str, catalog: Catalog) -> Entry | None:
    """The catalog entry of the part that computes the metric `name`; None if there is no such metric."""
    return None if metric_problem(name, catalog) else catalog.get("metric", parse_metric(name)[0])


def metric_problem(name: str, catalog: Catalog) -> str | None:
    """The message on an invalid name of a metric, such as `recall@0`; None if it is valid."""
    file, k = parse_metric(name)
    entry = catalog.get("metric", file)
    if entry is None:
        meant = _USUAL_NAMES.get(file.casefold()) or near(file, catalog.names("metric"))
        right = f"no metric named {shown(name)}; did you mean '{meant}@{(k or '').casefold()}'?"
        return right if meant and k else unknown("metric", file, catalog.names("metric"))
    parameter = entry.parameter("k")
    if k is None:
        return f"metric {file!r} needs a k, such as '{file}@1'" if parameter and parameter.required else None
    if parameter is None:
        return f"metric {file!r} takes no k, found {name!r}; write {file!r}"
    if parameter.type == "literal":
        choices = [str(choice) for choice in parameter.choices or []]
        return None if k in choices else f"no metric {name!r}; expected {listed([f'{file}@{c}' for c in choices])}"
    if not (k.isascii() and k.isdecimal() and not k.startswith("0")):
        return f"no metric {name!r}; after the @ stands a whole number of at least 1, such as '{file}@1'"
    return None


class MetricFacts(NamedTuple):
    """The catalog's answers on a metric that a recipe names."""

    entry: Entry | None
    """Of the part that computes it; None if there is no such metric."""
    problem: str | None
    """Why the task of the recipe cannot compute it."""
    at_the_end: bool
    """Whether it is measured only at the end of a training."""
    declared: list[str]
    """The metrics that every training of the recipe's task on its data set computes; empty if either is unknown."""


def facts_of_metrics(
    names: Iterable[str], task: Entry | None, dataset: str | None, catalog: Catalog
) -> dict[str, MetricFacts]:
    """What the catalog knows of metrics for a task and a data set, by the name of the metric."""
    declared = catalog.metrics(dataset, task.name) if task else []
    found = {}
    for name in dict.fromkeys(names):
        entry, problem = metric_entry(name, catalog), metric_problem(name, catalog)
        if entry and task and not catalog.read_by(name, task):
            reads = entry.facts.get("reads", EMBEDDINGS)
            problem = f"metric {name!r} reads {reads}, but task {task.name!r} gives {' and '.join(given(task))}"
        ended = entry is not None and task is not None and catalog.at_the_end(name, task)
        found[name] = MetricFacts(entry, problem, ended, declared)
    return found


class Inner(NamedTuple):
    """A part that is a hyper-parameter of another part, such as the backbone within a frozen backbone."""

    path: str  # its place in a recipe: `backbone.of`
    part: Part
    entry: Entry

    @property
    def option(self) -> str:
        return self.path.partition(".")[2]


def holders(entry: Entry) -> list[Parameter]:
    """The hyper-parameters of a part that take a part as their value."""
    return [parameter for parameter in entry.parameters if parameter.type == "part"]


def inner(entry: Entry, options: Mapping[str, Any], catalog: Catalog) -> list[Inner]:
    """The existing parts among the hyper-parameter values `options` of a part."""
    found = []
    for holder in holders(entry):
        part = Part.model_validate(options[holder.name]) if options.get(holder.name) is not None else None
        within = catalog.get(holder.kind, part.name) if part else None
        if part and within:
            found.append(Inner(f"{entry.kind}.{holder.name}", part, within))
    return found


def inner_of(recipe: Recipe, catalog: Catalog) -> list[Inner]:
    """The parts that are hyper-parameters of a recipe's parts."""
    parts = [(kind, recipe.part(kind)) for kind in recipe.kinds]
    held = [(catalog.get(kind, part.name), part) for kind, part in parts]
    return [within for entry, part in held if entry for within in inner(entry, part.options, catalog)]


def named(recipe: Recipe, catalog: Catalog) -> dict[str, str]:
    """The name of each part of a recipe by its kind, and of each inner part by its path, such as `backbone.of`."""
    names = {kind: recipe.part(kind).name for kind in recipe.kinds}
    return names | {within.path: within.part.name for within in inner_of(recipe, catalog)}


def named_in(recipe: Mapping[str, Any], versions: Mapping[str, int]) -> dict[str, str | None]:
    """The part names of a completed recipe in JSON, for the paths in its pinned versions; None for a kind that it
    lacks.
    """
    names = {kind: (recipe.get(kind) or {}).get("name") for kind in PART_FIELDS}
    for path in versions:
        kind, _, option = path.partition(".")
        if option and kind in PART_FIELDS:
            names[path] = ((recipe.get(kind) or {}).get(option) or {}).get("name")
    return names


def with_facts_of_inner(entry: Entry, held: Sequence[Inner]) -> Entry:
    """The entry of a part that holds these; a loss of pytorch-metric-learning also has the facts of its class.

    The latter asks for the number of classes only if the class does.
    """
    found = next((within.entry for within in held if within.entry.kind == PML[0]), None)
    if found is None:
        return entry
    fills = found.facts.get("fills")
    inputs = [ask for ask in entry.inputs if ask != "classes" or (isinstance(fills, dict) and ask in fills.values())]
    return entry.model_copy(update={"facts": {**entry.facts, **found.facts}, "inputs": inputs})


def entry_at(path: str, names: Mapping[str, str], catalog: Catalog) -> Entry | None:
    """The catalog entry of the part at a recipe's path, `loss` or `backbone.of`; `names` is from `named`."""
    kind, _, option = path.partition(".")
    entry = catalog.get(kind, names.get(kind, ""))
    if not option:
        return entry
    holder = entry.parameter(option) if entry else None
    return catalog.get(holder.kind, names[path]) if holder else None
