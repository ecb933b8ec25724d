"""Every problem of a recipe, with the field that it concerns."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workers.catalog.compatibility import Chosen, RecipeDraft, disagreements
from workers.catalog.inventory import Catalog, filled, holders
from workers.catalog.recipe import PATHS, below_root, holds, need_of, not_held, selected
from workers.catalog.source import Entry, Parameter
from workers.catalog.wording import Problem, listed, meant, sentence, shown, unknown
from workers.contract import (
    DEFAULT_TASK,
    PART_FIELDS,
    ClassHoldout,
    CrossValidation,
    ImageHoldout,
    NoValidation,
    Part,
    Pins,
    Recipe,
    Select,
    Validation,
)
from workers.figures.options import MODELS

BATCH: Final = ("batch_size", "batchsize", "batch")
"""What the size of a batch is called elsewhere; here it is the sampler's."""


def meant_of_parts(name: str, catalog: Catalog) -> str | None:
    """What would be right for a field of the recipe that is a hyper-parameter of parts; None where it is none."""
    if name in BATCH:
        return "the batch is `sampler.classes` x `sampler.per_class`, or `sampler.batch` of sampler 'shuffle'"
    kinds = [kind for kind in PART_FIELDS if any(one.parameter(name) for one in catalog.of(kind))]
    return f"did you mean {' or '.join(repr(f'{kind}.{name}') for kind in kinds)}?" if kinds else None


def part_problems(kind: str, value: Any, catalog: Catalog, path: str = "") -> Iterator[Problem]:
    """What is wrong with one part as it was written: a name, or a mapping with `name` and hyper-parameters.

    It stands at `path` of the recipe; where none is given, at its kind.
    """
    path = path or kind
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
                suggestion = meant(option, sorted(known)) if known else "it has none"
                if kind == "sampler" and option in BATCH and entry.parameter("per_class"):
                    suggestion = "the batch is `classes` x `per_class`"
                raise ValueError(f"{kind} {name!r} has no hyper-parameter {shown(option)}; {suggestion}")
            value = parameter.cast(given)
            if option in PATHS and "root" in entry.asks and not entry.own and isinstance(value, str):
                _require_below_root(value)
        except ValueError as error:
            yield Problem(path=f"{path}.{option}", message=str(error))
            continue
        if parameter.type == "part" and given is not None:
            yield from _inner_problems(entry, parameter, given, catalog)
    for parameter in entry.parameters:
        if parameter.required and parameter.name not in options:
            message = f"is missing; {kind} {name!r} needs `{parameter.name}`, {parameter.expected}"
            yield Problem(path=f"{path}.{parameter.name}", message=message)


def _require_below_root(path: str) -> None:
    if not below_root(path):
        right = "such as 'birds/images'; the data root is METRICSWEEP_DATA, or HOME/data"
        raise ValueError(f"expected a path below the data root, {right}; found {shown(path)}")


def _inner_problems(entry: Entry, holder: Parameter, given: Any, catalog: Catalog) -> Iterator[Problem]:
    """What is wrong with a part that another one holds, which holds none itself."""
    name, _ = _read(given)
    path, within = f"{entry.kind}.{holder.name}", catalog.get(holder.kind, name)
    if within and holders(within):
        fitting = listed(one.name for one in catalog.of(holder.kind) if not holders(one))
        yield Problem(path=path, message=f"{within.kind} {name!r} holds a part itself; expected one of {fitting}")
        return
    yield from part_problems(holder.kind, given, catalog, path)


def meant_task(value: Any, catalog: Catalog) -> Entry:
    """The task that is named, whatever is wrong with its hyper-parameters; the default where there is no such one."""
    name, _ = _read(value)
    named = catalog.get("task", name) if isinstance(name, str) else None
    return named or chosen_part("task", DEFAULT_TASK, catalog).entry


def _read(value: Any) -> tuple[Any, dict[str, Any]]:
    """The name and the hyper-parameters of a part as it was written."""
    if isinstance(value, Part):
        return value.name, value.options
    if isinstance(value, Mapping):
        return value.get("name"), {str(option): given for option, given in value.items() if option != "name"}
    return value, {}


def chosen_part(kind: str, value: Any, catalog: Catalog) -> Chosen:
    """A part without problems, with its defaults."""
    name, options = _read(value)
    entry = catalog.get(kind, name)
    if entry is None:
        raise LookupError(f"{kind} {name!r} has problems")
    return _counted(Chosen(entry, filled(entry, options, catalog)), catalog)


def _counted(chosen: Chosen, catalog: Catalog) -> Chosen:
    """A data set that states no counts has those that were found in its files."""
    if chosen.entry.kind != "dataset" or not catalog.counts or "classes" in chosen.entry.facts:
        return chosen
    need = need_of(Part.model_validate({"name": chosen.entry.name, **chosen.options}), None, catalog)
    found = catalog.counts.get(need.key) if need is not None else None
    if not found:
        return chosen
    facts = {name: {split: one[name] for split, one in found.items()} for name in ("classes", "images")}
    return replace(chosen, entry=chosen.entry.model_copy(update={"facts": {**chosen.entry.facts, **facts}}))


MOST_PROBLEMS: Final = 100
"""Problems that are told of one part, or of the fields of a recipe."""


class RecipeValidation:
    """Judges recipes that have most in common: fields and parts that stood in an earlier one are not judged again.

    What is the same object is the same value: a recipe must not be changed in place between two judgements.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._wholes: dict[int, tuple[Any, Any]] = {}
        self._fields: dict[tuple[Any, ...], tuple[Any, _Fields]] = {}
        self._parts: dict[tuple[Any, ...], tuple[Any, tuple[list[Problem], Chosen | None]]] = {}

    def problems(self, recipe: Mapping[str, Any]) -> list[Problem]:
        """Everything that is wrong with a recipe as it was written; empty when it can be completed and trained."""
        fields = self._of_fields(recipe)
        problems = list(fields.problems)
        parts: dict[str, Chosen] = {}
        task = meant_task(recipe.get("task", DEFAULT_TASK), self._catalog)
        problems += not_held(task, recipe, fields.rest, self._catalog)
        held = holds(task)
        for kind in PART_FIELDS:
            value = recipe[kind] if kind in recipe else getattr(fields.rest, kind)
            spared = value is None and (kind not in held.must or kind not in recipe)
            if kind not in fields.faulty and kind in held.must | held.may and not spared:
                wrong, chosen = self._of_part(kind, value)
                problems += wrong
                if chosen:
                    parts[kind] = chosen
        select = selected(fields.select, task) if fields.select else None
        draft = RecipeDraft(parts, fields.validation, select, fields.rest, fields.length)
        return problems + list(disagreements(draft, self._catalog))

    def _of_fields(self, recipe: Mapping[str, Any]) -> "_Fields":
        key = tuple([(name, None if name in PART_FIELDS else id(value)) for name, value in recipe.items()])
        if key not in self._fields:
            kept = tuple(recipe.values())  # so that no other object gets the identity of one of these
            given = {name: one if name in PART_FIELDS else self._whole(one) for name, one in recipe.items()}
            self._fields[key] = kept, _fields(given, self._catalog)
        return self._fields[key][1]

    def _whole(self, value: Any) -> Any:
        if id(value) not in self._wholes:
            self._wholes[id(value)] = value, _whole(value)
        return self._wholes[id(value)][1]

    def _of_part(self, kind: str, value: Any) -> tuple[list[Problem], Chosen | None]:
        whole = isinstance(value, Mapping)
        key = (kind, *((option, id(given)) for option, given in value.items())) if whole else (kind, id(value))
        if key not in self._parts:
            kept = (value, *value.values()) if whole else value
            wrong = list(islice(part_problems(kind, value, self._catalog), MOST_PROBLEMS))
            self._parts[key] = kept, (wrong, None if wrong else chosen_part(kind, value, self._catalog))
        return self._parts[key][1]


def problems(recipe: Mapping[str, Any], catalog: Catalog) -> list[Problem]:
    """Everything that is wrong with a recipe as it was written; empty when it can be completed and trained."""
    return RecipeValidation(catalog).problems({str(name): value for name, value in recipe.items()})


class _Fields(NamedTuple):
    """What is known of the fields of a recipe without its parts."""

    problems: list[Problem]
    faulty: set[str]
    rest: Recipe
    validation: Validation | None
    select: Select | None
    length: int | None


def _fields(given: Mapping[str, Any], catalog: Catalog) -> _Fields:
    found = list(_field_problems(given, catalog))
    faulty = {problem.path.partition(".")[0] for problem in found}
    sound = {name: _judged(name, value) for name, value in given.items() if name not in faulty}
    lengths = {name: sound.pop(name) for name in _LENGTHS if name in sound}
    measured = not faulty.intersection(_LENGTHS)
    rest = Recipe.model_validate(sound | (lengths if measured else {"iterations": 1}))
    validation = None if "validation" in faulty else rest.validation
    select = None if "select" in faulty else rest.select
    return _Fields(found, faulty, rest, validation, select, (rest.iterations or rest.epochs) if measured else None)


# The recipe's own fields

_ANY: Final = Part(name="any")
_LENGTHS: Final = ("iterations", "epochs")
"""The fields of which a recipe gives one."""


def _judged(name: str, value: Any) -> Any:
    """What the contract is to judge: not the parts, which are checked one by one against the catalog."""
    return _ANY if name in PART_FIELDS else value


def _whole(value: Any, depth: int = 4) -> Any:
    """The value with 3.0 as 3, since all numbers of the contract's own fields are whole; no field of it is deeper."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list) and depth:  # YAML can write a list that holds itself
        return [_whole(inner, depth - 1) for inner in value]
    if isinstance(value, Mapping) and depth:
        return {str(name): _whole(inner, depth - 1) for name, inner in value.items()}
    return value


def _field_problems(given: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    lengths = {name for name in _LENGTHS if given.get(name) is not None}
    told: Counter[int | str] = Counter()
    try:
        Recipe.model_validate({name: _judged(name, value) for name, value in given.items()}, strict=True)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            if details["loc"] and told[details["loc"][0]] < MOST_PROBLEMS:
                told[details["loc"][0]] += 1
                yield Problem(path=_path(details), message=_message(details, catalog))
    # The contract says so too, but only once every field by itself is right.
    if len(lengths) > 1 and not lengths.intersection(map(str, told)):
        yield Problem(path="epochs", message="`iterations` is given too; leave out one of them")
    if not lengths:
        yield Problem(path="iterations", message="is missing; expected a whole number of at least 1, or `epochs`")


def _path(error: ErrorDetails) -> str:
    location = [str(step) for step in error["loc"]]
    if location[0] == "validation":
        del location[1:2]  # pydantic names the member of the union here, which no reader wrote
        if error["type"] == "value_error":
            location.append("fold")  # the one field that is judged beside another
    if location[0] == "figures":
        del location[2:3]  # likewise, of a figure in the list
    return ".".join(location)


_EXAMPLE: Final = "expected a mapping such as {{name: class_holdout}} or {{name: none}}, found {found}"
_SAID: Final = {
    "model_attributes_type": _EXAMPLE,
    "union_tag_not_found": _EXAMPLE,
    "union_tag_invalid": "expected one of {expected_tags}, found {tag}",
}
_SAID_OF_FIGURES: Final = {
    "model_attributes_type": "expected a figure such as norms or {{name: panels, depth: 5}}, found {found}",
    "union_tag_not_found": "expected a figure such as {{name: panels, depth: 5}}, found {found}",
}
"""What is said of a recipe's fields that have several forms."""


def _message(error: ErrorDetails, catalog: Catalog) -> str:
    name = str(error["loc"][-1])
    if error["type"] == "extra_forbidden":
        if len(error["loc"]) == 1 and (right := meant_of_parts(name, catalog)):
            return f"a recipe has no field {shown(name)}; {right}"
        owner = "a recipe" if len(error["loc"]) == 1 else f"`{error['loc'][0]}`"
        owner = f"figure {error['loc'][2]!r}" if error["loc"][0] == "figures" else owner
        return f"{owner} has no field {shown(name)}; {meant(name, sorted(_siblings(error)))}"
    return sentence(error, _SAID | (_SAID_OF_FIGURES if error["loc"][0] == "figures" else {}))


def _siblings(error: ErrorDetails) -> list[str]:
    """The fields that exist where an unknown one was found."""
    owners: Mapping[tuple[int | str, ...], type[BaseModel]] = {
        (): Recipe,
        ("select",): Select,
        ("pins",): Pins,
        ("validation", "none"): NoValidation,
        ("validation", "class_holdout"): ClassHoldout,
        ("validation", "cross_validation"): CrossValidation,
        ("validation", "image_holdout"): ImageHoldout,
    }
    place = error["loc"][:-1]
    owner = MODELS[str(place[2])] if place[:1] == ("figures",) else owners[place]
    return list(owner.model_fields)
