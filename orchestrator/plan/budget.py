"""An equal budget: a cell with fewer candidates gets further ones, which differ in the learning rate alone."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import Any, Final, NamedTuple

from orchestrator.plan.problems import effort
from orchestrator.plan.reading.points import MOST_TRIALS, Point, cells_of, count, points, recipe_of
from orchestrator.spec.axis import Choice
from orchestrator.spec.label import label_of
from orchestrator.spec.patch import apply
from orchestrator.spec.spec import Spec
from orchestrator.views.deadline import timely
from workers.catalog import Catalog, Problem
from workers.contract import canonical_json

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


def problems(spec: Spec, catalog: Catalog, *, sound: bool) -> list[Problem]:
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
        effort.spend(1 + len(others[-1]) // _CHARACTERS)
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
