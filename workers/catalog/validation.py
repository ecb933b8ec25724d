"""What is wrong with a recipe: every problem at once, each with its place, what was found and what would be right."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workers.catalog.chosen import Chosen
from workers.catalog.compatibility import disagreements
from workers.catalog.draft import RecipeDraft
from workers.catalog.holdings import holds, not_held, selected
from workers.catalog.inventory import Catalog
from workers.catalog.part_validation import chosen_part, meant_of_parts, meant_task, part_problems
from workers.catalog.wording import Problem, meant, sentence, shown
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
