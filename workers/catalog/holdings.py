"""What a recipe holds: the parts that its task asks for, by the signature of the task, and nothing else."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from workers.catalog.inventory import Catalog
from workers.catalog.signature import Entry
from workers.catalog.wording import Problem, listed
from workers.contract import GOES_WITH, PART_FIELDS, Recipe, Select

ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("backbone", "head"),
    "loss": ("loss",),
    "regularizer": ("regularizer",),
    "eta": ("eta_schedule",),
    "batches": ("dataset", "sampler"),
}
"""The kinds of parts that stand behind what a task asks the trainer for."""
ALWAYS: Final = ("task", "optimizer", "schedule")
"""The kinds that every recipe holds."""

Selecting = TypeVar("Selecting", bound=Select)


@cache
def _default(field: str) -> Any:
    """What a recipe has that says nothing; made when it is asked for, since who only edits a spec asks for none."""
    return getattr(Recipe(iterations=1), field)


class Holdings(NamedTuple):
    """The kinds of parts of a recipe."""

    must: frozenset[str]
    may: frozenset[str]


def holds(task: Entry) -> Holdings:
    """What recipes of a task must hold and may hold; they hold nothing else."""
    must = [kind for ask in task.asks if ask not in task.optional_asks for kind in ASKED.get(ask, ())]
    may = [kind for ask in task.optional_asks for kind in ASKED.get(ask, ())]
    return Holdings(frozenset((*ALWAYS, *must)), frozenset(may))


def selected(select: Selecting, task: Entry) -> Selecting:
    """A selection with the task's metric and split where it does not say them itself."""
    stated = {"metric": task.facts.get("selects"), "split": task.facts.get("split")}
    unsaid = {name: one for name, one in stated.items() if one is not None and name not in select.model_fields_set}
    return select.model_copy(update=unsaid) if unsaid else select


def former(task: Entry) -> str | None:
    """Why a task cannot be trained that has the form which tasks had before they said what they measure."""
    if "metrics" in task.facts and "selects" in task.facts:
        return None
    said = "today a task says itself what it measures, what its modules are, what it optimizes and what a step is"
    return f"task {task.name!r} has the form that tasks had before: {said} (docs/add-a-part.md)"


def not_held(task: Entry, recipe: Mapping[str, Any], read: Recipe, catalog: Catalog) -> Iterator[Problem]:
    """What a recipe as it was written holds too much or too little for its task; `read` are its sound plain fields.

    A field at its default says nothing, whoever filled it in.
    """
    if message := former(task):
        yield Problem(path="task", message=message)
        return
    held = holds(task)
    for kind in PART_FIELDS:
        if kind in held.must and kind not in recipe and _default(kind) is None:
            yield Problem(path=kind, message=f"is missing; expected one of {listed(catalog.names(kind))}")
        elif kind not in held.must | held.may and _says(kind, recipe.get(kind)):
            yield Problem(path=kind, message=f"task {task.name!r} takes no {kind}; leave it out")
    for field, part in GOES_WITH.items():
        if field in PART_FIELDS or part in held.must or field not in recipe:
            continue
        if (part not in held.may or recipe.get(part) is None) and getattr(read, field) != _default(field):
            why = f"says something of a {part}, and task {task.name!r} takes none"
            yield Problem(path=field, message=f"{why}; leave it out" if part not in held.may else f"needs a {part}")
    if recipe.get("epochs") is not None and "dataset" not in held.must | held.may:
        message = f"counts the images of a data set, and task {task.name!r} takes none; give `iterations`"
        yield Problem(path="epochs", message=message)


def _says(kind: str, value: Any) -> bool:
    """Whether a part as it was written is another than the default, which says nothing."""
    default = _default(kind)
    if value is None or default is None:
        return value is not None
    return value not in (default, default.name, {"name": default.name})
