"""The points of a grid: which alternatives a spec's axes have, how many combine, and what a search may take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import isfinite, prod
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from orchestrator.spec.fields import label_of
from orchestrator.spec.spec import ROLES, Axis, Choice, Group, Rule, Slot, Spec, applies, apply
from orchestrator.views import errors
from orchestrator.views.errors import InvalidSpecError, timely
from orchestrator.views.runs import Labels
from workers.catalog import Catalog, Problem, comparing
from workers.contract import canonical_json

MOST_TRIALS: Final = 100_000
MOST_STEPS: Final = 1_500_000
"""Steps of one check: groups and alternatives that are examined."""
_MOST_COMPARED: Final = 1_000_000
"""Pairs of characters that are compared to find near misses; after that there are no suggestions."""

_TOO_MUCH: Final = (
    "the spec takes too long to check: its groups with `when`, its rules or its tables stand for too many "
    "combinations; write fewer of them, or divide the sweep"
)
_LOOK: Final = 1 << 12  # steps after which the deadline is checked

Axes = Mapping[str, Axis]


@dataclass
class Effort:
    """Counts the steps that the check of a spec has taken."""

    steps: int = 0


_current: ContextVar[Effort | None] = ContextVar("effort", default=None)


@contextmanager
def limited() -> Iterator[Effort]:
    """Limit the number of steps that the check of a spec may take within the block."""
    effort = Effort()
    token = _current.set(effort)
    try:
        with comparing(_MOST_COMPARED):
            yield effort
    finally:
        _current.reset(token)


def spend(steps: int = 1) -> None:
    """Count steps of the check; raises InvalidSpecError above the limit, GoneError if the client has disconnected."""
    effort = _current.get()
    if effort is None:
        return
    before, effort.steps = effort.steps, effort.steps + steps
    if effort.steps > MOST_STEPS:
        raise InvalidSpecError([Problem("", _TOO_MUCH)])
    if before // _LOOK != effort.steps // _LOOK:
        errors.check()


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid: a chosen alternative of each axis that applies."""

    labels: Labels
    choices: tuple[Choice, ...]


class Options:
    """The alternatives of an axis by the labels of other axes, cached."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._named = tuple(dict.fromkeys(name for group in axis for name in group.when))
        self._found: dict[tuple[str | None, ...], list[Choice] | None] = {}
        self._by_label: dict[tuple[str | None, ...], dict[str, Choice]] = {}

    def alternatives(self, labels: Labels) -> list[Choice] | None:
        """The alternatives of the axis that apply at these labels of other axes; None if the axis does not apply.

        It may apply without alternatives, if `only` or `without` removed all; then no such point exists.
        """
        if len(self._axis) == 1 and not self._named:
            return self._axis[0].choices
        key = self._key(labels)
        if key not in self._found:
            spend(sum(map(_weight, self._axis)))
            applying = [group for group in self._axis if applies(group.when, labels)]
            choices = [choice for group in applying for choice in group.choices]
            self._found[key] = choices if applying else None
        return self._found[key]

    def labelled(self, label: str, labels: Labels) -> Choice | None:
        """The alternative with this label among those that apply at `labels`; None if none has it."""
        key = self._key(labels)
        if key not in self._by_label:
            self._by_label[key] = {choice.label: choice for choice in reversed(self.alternatives(labels) or [])}
        return self._by_label[key].get(label)

    def _key(self, labels: Labels) -> tuple[str | None, ...]:
        return tuple([labels.get(name) for name in self._named])


def _weight(group: Group) -> int:
    """The steps that one look at a group counts."""
    return 1 + sum(map(len, group.when.values())) // 8 + len(group.choices) // 8


def points(axes: Axes, given: Labels) -> Iterator[Point]:
    """All points of the grid of these axes, the last axis varying fastest; without axes there is one empty point.

    `given` are labels of other axes that conditions may name.
    """
    names = list(axes)
    options = [Options(axes[name]) for name in names]

    def walk(at: int, labels: dict[str, str], choices: tuple[Choice, ...]) -> Iterator[Point]:
        if at == len(names):
            yield Point({name: label for name, label in labels.items() if name in axes}, choices)
            return
        name, applying = names[at], options[at].alternatives(labels)
        spend()
        if applying is None:
            yield from walk(at + 1, labels, choices)
        for choice in applying or ():
            yield from walk(at + 1, {**labels, name: choice.label}, (*choices, choice))

    return walk(0, dict(given), ())


def cells_of(spec: Spec) -> Iterator[Point]:
    """All cells of a spec in order: the points of its compare axes that have at least one candidate and repeat."""
    found = points(spec.compare, {})
    if all(group.choices for axes in (spec.tune, spec.repeat) for axis in axes.values() for group in axis):
        return found
    return (
        cell
        for cell in found
        if all(next(points(axes, cell.labels), None) is not None for axes in (spec.tune, spec.repeat))
    )


def count(axes: Axes, given: Labels, most: int) -> int:
    """The number of points of the grid of these axes; any number above `most` if there are more."""
    named = {other for axis in axes.values() for group in axis for other in group.when}
    tied = {name: axis for name, axis in axes.items() if name in named or any(group.when for group in axis)}
    free = prod(sum(len(group.choices) for group in axis) or 1 for name, axis in axes.items() if name not in tied)
    return free * sum(1 for _ in islice(points(tied, given), most + 1)) if tied else free


def count_candidates(spec: Spec, cell: Labels, most: int = MOST_TRIALS) -> int:
    """The number of candidates of a cell: the points of its tune axes, its budget, or what its search may try."""
    search, budget = spec.search, spec.select.budget
    if not search.adaptive:
        return count(spec.tune, cell, most) if budget is None else budget
    # Groups that may or may not apply are counted as if they did, since ranges have no count.
    applying = [
        group for axis in spec.tune.values() for group in axis
        if all(name not in cell or cell[name] in wanted for name, wanted in group.when.items())
    ]  # fmt: skip
    limit = search.trials if search.trials is not None else most + 1
    if any(group.span for group in applying):
        return limit
    return min(limit, count(spec.tune, cell, most))


def most_trials(spec: Spec, cell: Labels) -> int:
    """The number of trials of a cell, or the most that its search may create; a lower bound above the limit."""
    again = spec.search.reproduce if spec.search.adaptive else 0
    return count_candidates(spec, cell) * count(spec.repeat, cell, MOST_TRIALS) + again


def count_trials(spec: Spec) -> tuple[int, bool]:
    """The number of trials of a spec and whether it is exact; above `MOST_TRIALS` it may be a lower bound."""
    groups = [group for role in ROLES for axis in spec.axes(role).values() for group in axis]
    if not spec.search.adaptive and not any(group.when or not group.choices for group in groups):
        return count(spec.compare, {}, MOST_TRIALS) * most_trials(spec, {}), True
    total = 0
    for cell in cells_of(spec):
        total += most_trials(spec, cell.labels)
        if total > MOST_TRIALS:
            return total, False
    return total, True


def rules_of(spec: Spec, cell: Point) -> list[Rule]:
    """The rules of a spec whose conditions hold in a cell."""
    spend(sum(1 + sum(map(len, rule.when.values())) // 8 for rule in spec.rules))
    return [rule for rule in spec.rules if applies(rule.when, cell.labels)]


def recipe_of(spec: Spec, cell: Point, candidate: Point) -> dict[str, Any]:
    """The recipe of a candidate before completion: the base recipe with the patches of compare, rules, then tune."""
    recipe = spec.recipe
    for rank in (cell.choices, rules_of(spec, cell), candidate.choices):
        recipe = apply(recipe, (setting.patch for setting in rank))
    return {**recipe, "select": spec.select.of_recipes}


MOST_LOOKED_AT: Final = 100_000
"""Candidates whose slots are looked at."""


def slot_of(spec: Spec, labels: Labels) -> Slot | None:
    """The slot of the trials with these labels of compare and tune axes; None means the slot of the spec."""
    if not spec.slots:
        return None
    slot = _slot(spec, labels)
    return None if slot == spec.slot else slot


def where(spec: Spec, labels: Labels) -> str:
    """The labels that decide on the slot of these trials, such as `dataset=sop`; empty if no slot rule applies."""
    rules = [rule for rule in spec.slots if applies(rule.when, labels)]
    axes = dict.fromkeys(axis for rule in rules for axis in rule.when)
    return ", ".join(f"{axis}={labels[axis]}" for axis in axes)


def slots(spec: Spec) -> Iterator[tuple[Slot, str]]:
    """Each distinct slot of a spec's trials with the labels that decide on it; no labels for the slot of the spec."""
    seen: set[str] = set()
    for labels in islice(_places(spec), MOST_LOOKED_AT):
        slot = _slot(spec, labels)
        key = slot.model_dump_json()
        if key not in seen:
            seen.add(key)
            yield slot, "" if slot == spec.slot else where(spec, labels)


def _slot(spec: Spec, labels: Labels) -> Slot:
    named: dict[str, JsonValue] = spec.slot.model_dump(mode="json")
    for rule in spec.slots:
        if applies(rule.when, labels):
            named |= rule.slot
    return Slot.model_validate(named)


def _places(spec: Spec) -> Iterator[Labels]:
    """The labels that decide on slots, of every candidate."""
    if not spec.slots:
        yield {}
        return
    tuned = any(axis in spec.tune for rule in spec.slots for axis in rule.when)
    for cell in cells_of(spec):
        if not tuned:
            yield cell.labels
            continue
        for candidate in points(spec.tune, cell.labels):
            yield {**cell.labels, **candidate.labels}


RATE: Final = "optimizer.lr"
"""The path, and so the axis, by which candidates are added."""

_FACTORS: Final = (1.0, *(2.0**power for step in range(1, 11) for power in (-step, step)))
"""On a candidate's own learning rate, in the order in which they are tried: 1, 1/2, 2, 1/4, 4, ... 1/1024, 1024."""

_PLACE: Final = "select.budget"
_CHARACTERS: Final = 2_000  # of a recipe that are written in a step of `effort`


def candidates_of(spec: Spec, cell: Point, catalog: Catalog) -> Iterator[Point]:
    """The candidates of a cell: the points of its tune axes, filled up to the budget by further learning rates.

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


def budget_problems(spec: Spec, budget: int, catalog: Catalog, *, sound: bool) -> list[Problem]:
    """Problems of a spec's budget of candidates; if not `sound`, candidates that the budget adds are not checked."""
    search = spec.search
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
    return Problem(_PLACE, f"{message}, which {len(_FACTORS)} learning rates each make {reached}")


class _Pick(NamedTuple):
    """A point and its changed learning rate; None means the rate of the point."""

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
    for recipe in recipes:  # equal except for the rate
        others.append(canonical_json(apply(recipe, [{RATE: None}])))
        spend(1 + len(others[-1]) // _CHARACTERS)
    seen: set[tuple[str, str]] = set()
    for factor in _FACTORS:
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
    """Cached, since many cells share it."""
    return Choice(label=label_of(rate), patch={RATE: rate})


def _rate(recipe: dict[str, Any], catalog: Catalog) -> float | None:
    """The learning rate of a recipe, or the default of its optimizer; None if the optimizer has no learning rate."""
    optimizer = recipe["optimizer"]
    entry = catalog.get("optimizer", optimizer["name"])
    parameter = entry.parameter("lr") if entry else None
    rate = optimizer.get("lr", parameter.default) if parameter else None
    return float(rate) if isinstance(rate, int | float) else None


def _named(cell: Point, size: int) -> str:
    labels = ", ".join(f"{axis} {label}" for axis, label in cell.labels.items())
    candidates = "1 candidate" if size == 1 else f"{size} candidates"
    return f"the cell {labels} has {candidates}" if labels else f"the only cell has {candidates}"
