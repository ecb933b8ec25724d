"""The points of axes: every combination of alternatives that apply together, and how many there are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, Final

from orchestrator.plan.problems import effort
from orchestrator.spec.axis import Axis, Choice, Group
from orchestrator.spec.patch import Rule, apply
from orchestrator.spec.spec import Spec
from orchestrator.spec.when import applies
from orchestrator.views.planned import Labels

MOST_TRIALS: Final = 100_000

Axes = Mapping[str, Axis]


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of each axis that applies."""

    labels: Labels
    choices: tuple[Choice, ...]


class Options:
    """The alternatives of an axis beside the labels of those before it; looked up once for all labels that it names."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._named = named(axis)
        self._found: dict[tuple[str | None, ...], list[Choice] | None] = {}

    def beside(self, labels: Labels) -> list[Choice] | None:
        """Those that apply; none where the axis does not apply.

        It may apply without alternatives, where `only` and `without` took them all: then there is no such point.
        """
        if len(self._axis) == 1 and not self._named:
            return self._axis[0].choices
        key = tuple([labels.get(name) for name in self._named])
        if key not in self._found:
            effort.spend(sum(map(weight, self._axis)))
            applying = [group for group in self._axis if applies(group.when, labels)]
            choices = [choice for group in applying for choice in group.choices]
            self._found[key] = choices if applying else None
        return self._found[key]


def named(axis: Axis) -> tuple[str, ...]:
    """The other axes on whose labels it depends what of an axis applies."""
    return tuple(dict.fromkeys(name for group in axis for name in group.when))


def weight(group: Group) -> int:
    """What a look at a group costs: its labels are compared, and its alternatives are put on a list."""
    return 1 + sum(map(len, group.when.values())) // 8 + len(group.choices) // 8


def points(axes: Axes, given: Labels) -> Iterator[Point]:
    """All points in order, the last axis varying fastest; one without labels when there are no axes.

    `given` are the labels that `when` may name beside those of the axes themselves.
    """
    names = list(axes)
    options = [Options(axes[name]) for name in names]

    def walk(at: int, labels: dict[str, str], choices: tuple[Choice, ...]) -> Iterator[Point]:
        if at == len(names):
            yield Point({name: label for name, label in labels.items() if name in axes}, choices)
            return
        name, applying = names[at], options[at].beside(labels)
        effort.spend()
        if applying is None:
            yield from walk(at + 1, labels, choices)
        for choice in applying or ():
            yield from walk(at + 1, {**labels, name: choice.label}, (*choices, choice))

    return walk(0, dict(given), ())


def cells_of(spec: Spec) -> Iterator[Point]:
    """All cells in order: the points of the compare axes at which there is a candidate and a repeat."""
    found = points(spec.compare, {})
    if not any(_lacking(axis) for axes in (spec.tune, spec.repeat) for axis in axes.values()):
        return found
    return (cell for cell in found if all(_any(axes, cell.labels) for axes in (spec.tune, spec.repeat)))


def _lacking(axis: Axis) -> bool:
    return any(not group.choices for group in axis)


def _any(axes: Axes, given: Labels) -> bool:
    return next(points(axes, given), None) is not None


def conditional(axes: Axes) -> bool:
    """Whether what applies depends on the point."""
    return any(group.when or not group.choices for axis in axes.values() for group in axis)


def count(axes: Axes, given: Labels, most: int) -> int:
    """How many points there are; somewhere above `most` where counting on would take long."""
    named = {other for axis in axes.values() for group in axis for other in group.when}
    tied = {name: axis for name, axis in axes.items() if name in named or any(group.when for group in axis)}
    free = prod(sum(len(group.choices) for group in axis) or 1 for name, axis in axes.items() if name not in tied)
    return free * sum(1 for _ in islice(points(tied, given), most + 1)) if tied else free


def count_candidates(spec: Spec, cell: Labels, most: int = MOST_TRIALS) -> int:
    """How many candidates a cell gets: all points of its tune axes, its budget, or as many as its search may try."""
    search, budget = spec.search, spec.select.budget
    if not search.adaptive:
        return count(spec.tune, cell, most) if budget is None else budget
    # A group whose `when` names a tune axis too may apply or not: counted as if it did, since ranges have no count.
    applying = [group for axis in spec.tune.values() for group in axis if _may_apply(group, cell)]
    limit = search.trials if search.trials is not None else most + 1
    if any(group.span for group in applying):
        return limit
    return min(limit, count(spec.tune, cell, most))


def _may_apply(group: Group, cell: Labels) -> bool:
    return all(axis not in cell or cell[axis] in wanted for axis, wanted in group.when.items())


def count_trials(spec: Spec, most: int = MOST_TRIALS) -> tuple[int, bool]:
    """How many trials a spec asks for, and whether the number is exact; above `most` it may be only a lower bound."""
    if spec.search.adaptive:
        return _count_searched(spec, most)
    if not any(conditional(spec.axes(role)) for role in ("compare", "tune", "repeat")):
        return count(spec.compare, {}, most) * count_candidates(spec, {}, most) * count(spec.repeat, {}, most), True
    total = 0
    for cell in cells_of(spec):
        total += count_candidates(spec, cell.labels, most) * count(spec.repeat, cell.labels, most)
        if total > most:
            return total, False
    return total, True


def _count_searched(spec: Spec, most: int) -> tuple[int, bool]:
    total = 0
    for cell in cells_of(spec):
        total += count_candidates(spec, cell.labels, most) * count(spec.repeat, cell.labels, most)
        total += spec.search.reproduce
        if total > most:
            return total, False
    return total, True


def rules_of(spec: Spec, cell: Point) -> list[Rule]:
    """The rules that apply in a cell."""
    effort.spend(sum(1 + sum(map(len, rule.when.values())) // 8 for rule in spec.rules))
    return [rule for rule in spec.rules if applies(rule.when, cell.labels)]


def recipe_of(spec: Spec, cell: Point, candidate: Point) -> dict[str, Any]:
    """The raw recipe of a candidate: the base recipe, then compare, rules and tune, each over what was before."""
    recipe = spec.recipe
    for rank in (cell.choices, rules_of(spec, cell), candidate.choices):
        recipe = apply(recipe, (setting.patch for setting in rank))
    return {**recipe, "select": spec.select.of_recipes}
