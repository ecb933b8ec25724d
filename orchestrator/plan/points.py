"""The points of a grid: which alternatives a spec's axes have, how many combine, and what a search may take."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isfinite, prod
from typing import Any, Final, NamedTuple

from orchestrator.plan.problems import spend
from orchestrator.spec.axes import Axis, Choice, Group, Rule, applies, apply, label_of
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import timely
from orchestrator.views.runs import Labels
from workers.catalog import Catalog, Problem
from workers.contract import canonical_json

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
            spend(sum(map(weight, self._axis)))
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
        spend()
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


def count_trials(spec: Spec) -> tuple[int, bool]:
    """How many trials a spec asks for, and whether that is exact; above `MOST_TRIALS` it may be a lower bound."""
    if spec.search.adaptive:
        return _count_searched(spec)
    if not any(conditional(spec.axes(role)) for role in ("compare", "tune", "repeat")):
        cells, repeats = (count(axes, {}, MOST_TRIALS) for axes in (spec.compare, spec.repeat))
        return cells * count_candidates(spec, {}) * repeats, True
    total = 0
    for cell in cells_of(spec):
        total += count_candidates(spec, cell.labels) * count(spec.repeat, cell.labels, MOST_TRIALS)
        if total > MOST_TRIALS:
            return total, False
    return total, True


def _count_searched(spec: Spec) -> tuple[int, bool]:
    total = 0
    for cell in cells_of(spec):
        total += count_candidates(spec, cell.labels) * count(spec.repeat, cell.labels, MOST_TRIALS)
        total += spec.search.reproduce
        if total > MOST_TRIALS:
            return total, False
    return total, True


def rules_of(spec: Spec, cell: Point) -> list[Rule]:
    """The rules that apply in a cell."""
    spend(sum(1 + sum(map(len, rule.when.values())) // 8 for rule in spec.rules))
    return [rule for rule in spec.rules if applies(rule.when, cell.labels)]


def recipe_of(spec: Spec, cell: Point, candidate: Point) -> dict[str, Any]:
    """The raw recipe of a candidate: the base recipe, then compare, rules and tune, each over what was before."""
    recipe = spec.recipe
    for rank in (cell.choices, rules_of(spec, cell), candidate.choices):
        recipe = apply(recipe, (setting.patch for setting in rank))
    return {**recipe, "select": spec.select.of_recipes}


RATE: Final = "optimizer.lr"
"""The path, and so the axis, by which candidates are added."""

FACTORS: Final = (1.0, *(2.0**power for step in range(1, 11) for power in (-step, step)))
"""On a candidate's own learning rate, in the order in which they are tried: 1, 1/2, 2, 1/4, 4, ... 1/1024, 1024."""

_PLACE: Final = "select.budget"
_CHARACTERS: Final = 2_000  # of a recipe that are written in a step of `effort`


def candidates_of(spec: Spec, cell: Point, catalog: Catalog) -> Iterator[Point]:
    """The candidates of a cell: the points of its tune axes, then as many at other learning rates as are missing.

    Each factor goes once through all points in their order. A rate that a cell has already is passed over. In a cell
    that gets further candidates each one is labelled with its learning rate.
    """
    found, budget = points(spec.tune, cell.labels), spec.select.budget
    if budget is None:
        return found
    given = list(found)
    if len(given) >= budget:
        return iter(given)
    return (pick.made() for pick in islice(_at_rates(spec, cell, given, catalog), budget))


def budget_problems(spec: Spec, catalog: Catalog, *, sound: bool) -> list[Problem]:
    """What is wrong with the budget; what it adds is looked at where all else is `sound`."""
    budget, search = spec.select.budget, spec.search
    if budget is None:
        return []
    if search.adaptive:
        message = f"search '{search.name}' gives every cell a budget already, by `search.trials`; leave one of them out"
        return [Problem(_PLACE, message)]
    cells = list(cells_of(spec))
    sizes = [count(spec.tune, cell.labels, MOST_TRIALS) for cell in cells]
    if over := [at for at, size in enumerate(sizes) if size > budget]:
        most = max(over, key=lambda at: sizes[at])  # the first of equals
        others = f"; {len(over) - 1} other cells have more than {budget} too" if len(over) > 1 else ""
        message = f"expected at least {sizes[most]}, found {budget}: {_named(cells[most], sizes[most])}{others}"
        return [Problem(_PLACE, message)]
    short = [(cell, size) for cell, size in zip(cells, sizes, strict=True) if size < budget]
    if not short or not sound:
        return []
    if role := next((role for role in ("compare", "repeat") if RATE in getattr(spec, role)), None):
        message = f"adds candidates by learning rate, but '{RATE}' is a {role} axis: {_named(*short[0])}"
        return [Problem(_PLACE, f"{message}, and the budget is {budget}")]
    shortages = (_shortage(spec, cell, size, catalog) for cell, size in timely(short))
    return list(islice((one for one in shortages if one), 1))


def _shortage(spec: Spec, cell: Point, size: int, catalog: Catalog) -> Problem | None:
    """Why a cell cannot get as many candidates as the budget asks for."""
    picks = _at_rates(spec, cell, list(points(spec.tune, cell.labels)), catalog)
    reached = sum(1 for _ in islice(picks, spec.select.budget))
    if reached == spec.select.budget:
        return None
    if reached <= size:
        return Problem(_PLACE, f"{_named(cell, size)}, and its optimizer has no learning rate to add others by")
    message = f"expected at most {reached}, found {spec.select.budget}: {_named(cell, size)}"
    return Problem(_PLACE, f"{message}, which {len(FACTORS)} learning rates each make {reached}")


class _Pick(NamedTuple):
    """A point, at a learning rate of its own or at none that differs."""

    point: Point
    rate: float | None

    def made(self) -> Point:
        """The candidate that this is."""
        if self.rate is None:
            return self.point
        choice = _choice(self.rate)
        return Point({**self.point.labels, RATE: choice.label}, (*self.point.choices, choice))


def _at_rates(spec: Spec, cell: Point, given: list[Point], catalog: Catalog) -> Iterator[_Pick]:
    recipes = [recipe_of(spec, cell, one) for one in given]
    rates = [_rate(recipe, catalog) for recipe in recipes]
    others = []
    for recipe in recipes:  # alike but for the rate
        others.append(canonical_json(apply(recipe, [{RATE: None}])))
        spend(1 + len(others[-1]) // _CHARACTERS)
    seen: set[tuple[str, str]] = set()
    for factor in FACTORS:
        for point, rate, other in zip(given, rates, others, strict=True):
            if rate is None and factor == 1:
                yield _Pick(point, None)
            if rate is None:
                continue
            moved = rate * factor
            if not isfinite(moved):
                continue
            key = other, repr(moved)
            if factor == 1 or key not in seen:
                yield _Pick(point, None if factor == 1 and RATE in point.labels else moved)
            seen.add(key)


@lru_cache(maxsize=1024)
def _choice(rate: float) -> Choice:
    """The same in all cells, of which there may be many."""
    return Choice(label=label_of(rate), patch={RATE: rate})


def _rate(recipe: dict[str, Any], catalog: Catalog) -> float | None:
    """The learning rate of a recipe as it was written, or the default of its optimizer; none where it has none."""
    optimizer = recipe["optimizer"]
    entry = catalog.get("optimizer", optimizer["name"])
    parameter = entry.parameter("lr") if entry else None
    rate = optimizer.get("lr", parameter.default) if parameter else None
    return float(rate) if isinstance(rate, int | float) else None


def _named(cell: Point, size: int) -> str:
    labels = ", ".join(f"{axis} {label}" for axis, label in cell.labels.items())
    candidates = "1 candidate" if size == 1 else f"{size} candidates"
    return f"the cell {labels} has {candidates}" if labels else f"the only cell has {candidates}"
