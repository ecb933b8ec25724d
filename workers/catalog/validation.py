"""Every problem of a recipe, with the field that it concerns."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from workers.catalog.compatibility import Chosen, RecipeDraft, disagreements
from workers.catalog.inventory import (
    Catalog,
    Entry,
    Inner,
    Parameter,
    facts_of_metrics,
    holders,
    selected,
    with_facts_of_inner,
)
from workers.catalog.recipe import PATHS, below_root, need_of
from workers.catalog.wording import Problem, listed, sentence, shown, suggestion, unknown
from workers.contract import (
    DEFAULT_TASK,
    GOES_WITH,
    PART_FIELDS,
    ClassHoldout,
    CrossValidation,
    ImageHoldout,
    NoValidation,
    Part,
    Pins,
    Recipe,
    Select,
)
from workers.figures.options import MODELS

BATCH: Final = ("batch_size", "batchsize", "batch")
"""Names of the batch size elsewhere; here the sampler decides it."""

_MOST_PROBLEMS: Final = 100  # reported for one part, or for one field of a recipe
_ANY: Final = Part(name="any")
_LENGTHS: Final = ("iterations", "epochs")  # a recipe gives one of them
_EXAMPLE: Final = "expected a mapping such as {{name: class_holdout}} or {{name: none}}, found {found}"
_MESSAGES: Final = {
    "model_attributes_type": _EXAMPLE,
    "union_tag_not_found": _EXAMPLE,
    "union_tag_invalid": "expected one of {expected_tags}, found {tag}",
}
_MESSAGES_OF_FIGURES: Final = {
    "model_attributes_type": "expected a figure such as norms or {{name: panels, depth: 5}}, found {found}",
    "union_tag_not_found": "expected a figure such as {{name: panels, depth: 5}}, found {found}",
}


@dataclass
class RecipeValidation:
    """Checks many similar recipes: a field or part object that was checked before is not checked again.

    So the values of a recipe must not be changed in place between two checks.
    """

    _catalog: Catalog
    _fields: dict[tuple[Any, ...], tuple[Any, "_Fields"]] = field(default_factory=dict)
    _parts: dict[tuple[Any, ...], tuple[Any, tuple[list[Problem], Chosen | None]]] = field(default_factory=dict)
    _wholes: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def problems(self, recipe: Mapping[str, Any]) -> list[Problem]:
        fields = self._check_fields(recipe)
        problems = list(fields.problems)
        parts: dict[str, Chosen] = {}
        task = _meant_task(recipe.get("task", DEFAULT_TASK), self._catalog)
        problems += _unused_or_missing(task, recipe, fields.draft.rest, self._catalog)
        held = holds(task)
        for kind in PART_FIELDS:
            value = recipe[kind] if kind in recipe else getattr(fields.draft.rest, kind)
            absent = value is None and (kind not in held.must or kind not in recipe)
            if kind not in fields.faulty and kind in held.must | held.may and not absent:
                wrong, chosen = self._check_part(kind, value)
                problems += wrong
                if chosen:
                    parts[kind] = chosen
        draft = fields.draft
        select = selected(draft.select, task) if draft.select else None
        metrics = facts_of_metrics(
            [*draft.rest.metrics, *([select.metric] if select else [])],
            parts["task"].entry if "task" in parts else None,
            parts["dataset"].entry.name if "dataset" in parts else None,
            self._catalog,
        )
        return problems + list(disagreements(replace(draft, parts=parts, select=select, metrics=metrics)))

    def _check_fields(self, recipe: Mapping[str, Any]) -> "_Fields":
        key = tuple([(name, None if name in PART_FIELDS else id(value)) for name, value in recipe.items()])
        if key not in self._fields:
            kept = tuple(recipe.values())  # so that no other object gets the id of one of these
            given = {name: value if name in PART_FIELDS else self._whole(value) for name, value in recipe.items()}
            self._fields[key] = kept, _fields(given, self._catalog)
        return self._fields[key][1]

    def _whole(self, value: Any) -> Any:
        if id(value) not in self._wholes:  # once for all recipes of a spec, since a list may have 100,000 items
            self._wholes[id(value)] = value, _whole(value)
        return self._wholes[id(value)][1]

    def _check_part(self, kind: str, value: Any) -> tuple[list[Problem], Chosen | None]:
        mapping = isinstance(value, Mapping)
        key = (kind, *((option, id(given)) for option, given in value.items())) if mapping else (kind, id(value))
        if key not in self._parts:
            kept = (value, *value.values()) if mapping else value
            made = _Options({}, [])
            wrong = list(islice(_part_problems(kind, value, self._catalog, kind, made), _MOST_PROBLEMS))
            entry = None if wrong else self._catalog.get(kind, _read(value)[0])
            entry = with_facts_of_inner(entry, made.inner) if entry and made.inner else entry
            chosen = Chosen(entry, made.values, made.inner) if entry else None
            if chosen and kind == "dataset" and self._catalog.counts:
                chosen = _with_counts(chosen, self._catalog)
            self._parts[key] = kept, (wrong, chosen)
        return self._parts[key][1]


class _Fields(NamedTuple):
    problems: list[Problem]
    faulty: set[str]
    draft: RecipeDraft


class _Options(NamedTuple):
    """The hyper-parameters of a part, with defaults, and the parts among them."""

    values: dict[str, JsonValue]
    inner: list[Inner]


def _meant_task(value: Any, catalog: Catalog) -> Entry:
    """The named task, whatever its hyper-parameters; the default task if it does not exist."""
    name, _ = _read(value)
    task = (catalog.get("task", name) if isinstance(name, str) else None) or catalog.get("task", DEFAULT_TASK)
    assert task is not None
    return task


def _read(value: Any) -> tuple[Any, dict[str, Any]]:
    """The name and the hyper-parameters of a part, as the recipe gives them."""
    if isinstance(value, Part):
        return value.name, value.options
    if isinstance(value, Mapping):
        return value.get("name"), {str(option): given for option, given in value.items() if option != "name"}
    return value, {}


def _with_counts(chosen: Chosen, catalog: Catalog) -> Chosen:
    """Gives a data set that states no counts those that were found in its files."""
    if "classes" in chosen.entry.facts:
        return chosen
    need = need_of(Part.model_validate({"name": chosen.entry.name, **chosen.options}), None, catalog)
    found = catalog.counts.get(need.key) if need is not None else None
    if not found:
        return chosen
    facts = {name: {split: counts[name] for split, counts in found.items()} for name in ("classes", "images")}
    return replace(chosen, entry=chosen.entry.model_copy(update={"facts": {**chosen.entry.facts, **facts}}))


def problems(recipe: Mapping[str, Any], catalog: Catalog) -> list[Problem]:
    """The problems of a recipe as the user wrote it; empty if it can be completed and trained."""
    return RecipeValidation(catalog).problems({str(name): value for name, value in recipe.items()})


def _fields(given: Mapping[str, Any], catalog: Catalog) -> _Fields:
    found = list(_field_problems(given, catalog))
    faulty = {problem.path.partition(".")[0] for problem in found}
    sound = {name: _without_parts(name, value) for name, value in given.items() if name not in faulty}
    lengths = {name: sound.pop(name) for name in _LENGTHS if name in sound}
    measured = not faulty.intersection(_LENGTHS)
    rest = Recipe.model_validate(sound | (lengths if measured else {"iterations": 1}))
    validation = None if "validation" in faulty else rest.validation
    select = None if "select" in faulty else rest.select
    length = (rest.iterations or rest.epochs) if measured else None
    return _Fields(found, faulty, RecipeDraft({}, validation, select, rest, length, catalog))


def _field_problems(given: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    lengths = {name for name in _LENGTHS if given.get(name) is not None}
    reported: Counter[int | str] = Counter()
    try:
        Recipe.model_validate({name: _without_parts(name, value) for name, value in given.items()}, strict=True)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            if details["loc"] and reported[details["loc"][0]] < _MOST_PROBLEMS:
                reported[details["loc"][0]] += 1
                yield Problem(path=_path(details), message=_message(details, catalog))
    # The contract checks this too, but only once every single field is valid.
    if len(lengths) > 1 and not lengths.intersection(map(str, reported)):
        yield Problem(path="epochs", message="`iterations` is given too; leave out one of them")
    if not lengths:
        yield Problem(path="iterations", message="is missing; expected a whole number of at least 1, or `epochs`")


def _without_parts(name: str, value: Any) -> Any:
    """Replaces a part by a valid one: parts are checked against the catalog instead."""
    return _ANY if name in PART_FIELDS else value


def _path(error: ErrorDetails) -> str:
    location = [str(step) for step in error["loc"]]
    if location[0] == "validation":
        del location[1:2]  # the member of the union, which the user did not write
    if location[0] == "figures":
        del location[2:3]  # likewise
    return ".".join(location)


def _message(error: ErrorDetails, catalog: Catalog) -> str:
    name = str(error["loc"][-1])
    if error["type"] == "extra_forbidden":
        if len(error["loc"]) == 1 and (right := suggested_part_field(name, catalog)):
            return f"a recipe has no field {shown(name)}; {right}"
        owner = "a recipe" if len(error["loc"]) == 1 else f"`{error['loc'][0]}`"
        owner = f"figure {error['loc'][2]!r}" if error["loc"][0] == "figures" else owner
        return f"{owner} has no field {shown(name)}; {suggestion(name, sorted(_siblings(error)))}"
    return sentence(error, _MESSAGES | (_MESSAGES_OF_FIGURES if error["loc"][0] == "figures" else {}))


def suggested_part_field(name: str, catalog: Catalog) -> str | None:
    """Advice for an unknown field of a recipe that is a hyper-parameter of some part; None for another field."""
    if name in BATCH:
        return "the batch is `sampler.classes` x `sampler.per_class`, or `sampler.batch` of sampler 'shuffle'"
    kinds = [kind for kind in PART_FIELDS if any(entry.parameter(name) for entry in catalog.of(kind))]
    return f"did you mean {' or '.join(repr(f'{kind}.{name}') for kind in kinds)}?" if kinds else None


def _siblings(error: ErrorDetails) -> list[str]:
    place = error["loc"][:-1]
    if place[:1] == ("figures",):
        return list(MODELS[str(place[2])].model_fields)
    owners: dict[tuple[int | str, ...], type[BaseModel]] = {(): Recipe, ("select",): Select, ("pins",): Pins}
    for model in (NoValidation, ClassHoldout, CrossValidation, ImageHoldout):
        owners["validation", model.model_fields["name"].default] = model
    return list(owners[place].model_fields)


INPUT_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("backbone", "head"),
    "loss": ("loss",),
    "regularizer": ("regularizer",),
    "eta": ("eta_schedule",),
    "batches": ("dataset", "sampler"),
}
"""The kinds of parts that the trainer needs for what a task asks for."""
ALWAYS: Final = ("task", "optimizer", "schedule")
"""The kinds that every recipe holds."""


class Holdings(NamedTuple):
    """The kinds of parts that the recipes of a task hold."""

    must: frozenset[str]
    may: frozenset[str]


def holds(task: Entry) -> Holdings:
    """The kinds of parts that recipes of a task must hold, and those that they may hold."""
    must = [kind for ask in task.inputs if ask not in task.optional_inputs for kind in INPUT_KINDS.get(ask, ())]
    may = [kind for ask in task.optional_inputs for kind in INPUT_KINDS.get(ask, ())]
    return Holdings(frozenset((*ALWAYS, *must)), frozenset(may))


def incomplete(task: Entry) -> str | None:
    """A message on the facts that an own task fails to declare; None if it can be trained."""
    missing = [f"`{fact}`" for fact in ("metrics", "selects") if fact not in task.facts]
    return f"task {task.name!r} must state {' and '.join(missing)} (docs/add-a-part.md)" if missing else None


def _unused_or_missing(task: Entry, recipe: Mapping[str, Any], read: Recipe, catalog: Catalog) -> Iterator[Problem]:
    """The problems of a recipe that lacks parts or fields, or has some that its task does not use.

    A field at its default is always accepted.
    """
    if message := incomplete(task):
        yield Problem(path="task", message=message)
        return
    held = holds(task)
    for kind in PART_FIELDS:
        if kind in held.must and kind not in recipe and Recipe.model_fields[kind].default is None:
            yield Problem(path=kind, message=f"is missing; expected one of {listed(catalog.names(kind))}")
        elif kind not in held.must | held.may and _differs(kind, recipe.get(kind)):
            yield Problem(path=kind, message=f"task {task.name!r} takes no {kind}; leave it out")
    for name, part in GOES_WITH.items():
        if name in PART_FIELDS or part in held.must or name not in recipe:
            continue
        at_default = getattr(read, name) == Recipe.model_fields[name].default
        if (part not in held.may or recipe.get(part) is None) and not at_default:
            why = f"says something of a {part}, and task {task.name!r} takes none"
            yield Problem(path=name, message=f"{why}; leave it out" if part not in held.may else f"needs a {part}")
    if recipe.get("epochs") is not None and "dataset" not in held.must | held.may:
        message = f"counts the images of a data set, and task {task.name!r} takes none; give `iterations`"
        yield Problem(path="epochs", message=message)


def _differs(kind: str, value: Any) -> bool:
    """Whether a part of a recipe is not the default."""
    default = Recipe.model_fields[kind].default
    if value is None or default is None:
        return value is not None
    return value not in (default, default.name, {"name": default.name})


def _whole(value: Any, depth: int = 4) -> Any:
    """The value with 3.0 as 3: all numbers of the recipe's own fields are whole. No field is nested deeper."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list) and depth:
        return [_whole(inner, depth - 1) for inner in value]
    if isinstance(value, Mapping) and depth:
        return {str(name): _whole(inner, depth - 1) for name, inner in value.items()}
    return value


def _part_problems(kind: str, value: Any, catalog: Catalog, path: str, made: "_Options") -> Iterator[Problem]:
    """What is wrong with a part, given by its name or as a mapping, at a `path` of the recipe.

    `made` gets the options of the part in the types of its hyper-parameters, and its defaults.
    """
    name, options = _read(value)
    if not isinstance(name, str):
        expected = f"a name, or a mapping with `name`: {listed(catalog.names(kind))}"
        yield Problem(path=path, message=f"expected {expected}; found {shown(value)}")
        return
    entry = catalog.get(kind, name)
    if entry is None:
        yield Problem(path=path, message=unknown(kind, name, catalog.names(kind)))
        return
    for option, given in options.items():
        parameter = entry.parameter(option)
        try:
            if parameter is None:
                known = [parameter.name for parameter in entry.parameters]
                advice = suggestion(option, sorted(known)) if known else "it has none"
                if kind == "sampler" and option in BATCH and entry.parameter("per_class"):
                    advice = "the batch is `classes` x `per_class`"
                raise ValueError(f"{kind} {name!r} has no hyper-parameter {shown(option)}; {advice}")
            made.values[option] = value = parameter.cast(given)
            confined = option in PATHS and "root" in entry.inputs and not entry.own
            if confined and isinstance(value, str) and not below_root(value):
                right = "such as 'birds/images'; the data root is METRICSWEEP_DATA, or HOME/data"
                raise ValueError(f"expected a path below the data root, {right}; found {shown(value)}")
        except ValueError as error:
            yield Problem(path=f"{path}.{option}", message=str(error))
            continue
        if parameter.type == "part" and given is not None:
            yield from _inner_problems(entry, parameter, given, catalog, made)
    for parameter in entry.parameters:
        if parameter.name in options:
            continue
        if parameter.required:
            message = f"is missing; {kind} {name!r} needs `{parameter.name}`, {parameter.expected}"
            yield Problem(path=f"{path}.{parameter.name}", message=message)
        made.values[parameter.name] = parameter.default
        if parameter.type == "part" and parameter.default is not None:
            yield from _inner_problems(entry, parameter, parameter.default, catalog, made)


def _inner_problems(
    entry: Entry, holder: Parameter, given: Any, catalog: Catalog, made: "_Options"
) -> Iterator[Problem]:
    """What is wrong with a part that is a hyper-parameter of another part. It must not hold a part itself."""
    name, _ = _read(given)
    path, within = f"{entry.kind}.{holder.name}", catalog.get(holder.kind, name)
    if within and holders(within):
        fitting = listed(other.name for other in catalog.of(holder.kind) if not holders(other))
        yield Problem(path=path, message=f"{within.kind} {name!r} holds a part itself; expected one of {fitting}")
        return
    own = _Options({}, [])
    yield from _part_problems(holder.kind, given, catalog, path, own)
    made.values[holder.name] = {"name": name, **own.values}
    if within:
        made.inner.append(Inner(path, Part.model_construct(None, name=name, **own.values), within))
