"""Whether what a sound spec becomes can be kept: how large its rows are, and how many labels its cells have."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.plan.problems import effort
from orchestrator.plan.reading.points import MOST_TRIALS, count, count_trials, points, recipe_of
from orchestrator.spec.axis import ROLES, Axis
from orchestrator.spec.patch import Patch
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Problem, complete
from workers.contract import Recipe

MOST_STORED: Final = 512 * 1024 * 1024
"""Bytes of a sweep's rows before anything is trained; 100,000 usual trials take half of it."""
MOST_LABELS: Final = 1_000_000
"""Labels of all cells, and of all candidates: both are held while a sweep is expanded."""
_ROW: Final = 600  # bytes of a trial and its training beside its labels and its recipe


def problems(spec: Spec, catalog: Catalog) -> list[Problem]:
    """Why the rows of a spec that is sound otherwise cannot be kept."""
    cells, (trials, _) = count(spec.compare, {}, MOST_TRIALS), count_trials(spec)
    effort.spend(trials * len(spec.slots) // 8)
    return [*_labels(spec, cells, trials), *_stored(spec, catalog, cells, trials)][:1]


def _labels(spec: Spec, cells: int, trials: int) -> Iterator[Problem]:
    for noun, number, axes in (("cells", cells, spec.compare), ("candidates", trials, spec.tune)):
        if number * len(axes) > MOST_LABELS:
            found = f"{number:,} {noun} with a label on each of {len(axes)} axes are more than {MOST_LABELS:,} labels"
            yield Problem("", f"{found}; name fewer axes, or divide the sweep")


def _stored(spec: Spec, catalog: Catalog, cells: int, trials: int) -> Iterator[Problem]:
    compare, tune, repeat = (sum(_longest_label(*one) for one in spec.axes(role).items()) for role in ROLES)
    size = cells * compare + trials * (tune + repeat + _ROW + _longest_recipe(spec, catalog))
    if size > MOST_STORED:
        found = f"the rows of {trials:,} trials would take up to {size // 2**20:,} MiB"
        right = "write shorter labels and values, or divide the sweep"
        yield Problem("", f"{found}; at most {MOST_STORED // 2**20:,} MiB are allowed: {right}")


def _longest_label(name: str, axis: Axis) -> int:
    return _length(name) + max((_length(choice.label) for group in axis for choice in group.choices), default=0)


def _longest_recipe(spec: Spec, catalog: Catalog) -> int:
    """The bytes of the first recipe, and beside it of the longest value that is set anywhere at each path."""
    cell = next(points(spec.compare, {}))
    first = recipe_of(spec, cell, next(points(spec.tune, cell.labels)))
    longest: dict[str, int] = defaultdict(int)
    for patch in _patches(spec):
        for path, value in patch.items():
            longest[path] = max(longest[path], _length(path) + _length(value))
    whole = complete(Recipe.model_validate(first), catalog).model_dump(mode="json")
    return _length(whole) + sum(longest.values())


def _patches(spec: Spec) -> Iterator[Patch]:
    for role in ROLES:
        for axis in spec.axes(role).values():
            yield from (choice.patch for group in axis for choice in group.choices)
    yield from (rule.patch for rule in spec.rules)


def _length(value: Mapping[str, Any] | Any) -> int:
    """The bytes of a value in the database, which holds ASCII."""
    return len(json.dumps(value)) + 2
