"""Which combinations are checked one by one: all of them, or, where they are many, some that hold every alternative."""

from collections.abc import Iterator
from itertools import chain, combinations, islice, product
from typing import Final, NamedTuple

from orchestrator.plan.problems import effort
from orchestrator.plan.reading.points import Point, cells_of, count, named, points, weight
from orchestrator.spec.axis import Axis, Choice
from orchestrator.spec.spec import Spec
from orchestrator.spec.when import applies
from orchestrator.views.planned import Labels

MOST_CHECKED: Final = 5_000


class Combination(NamedTuple):
    """A candidate in its cell."""

    cell: Point
    candidate: Point


def cover(spec: Spec, most: int = MOST_CHECKED) -> Iterator[Combination]:
    """All combinations of compare and tune alternatives where they are at most `most`.

    Else those in which two alternatives that can meet do meet, as far as `most` goes, and then each alternative once.
    """
    if _few(spec, most):
        for cell in cells_of(spec):
            for candidate in points(spec.tune, cell.labels):
                yield Combination(cell, candidate)
        return
    pins = {name: list(_pins(name, axis)) for name, axis in (spec.compare | spec.tune).items()}
    met = chain.from_iterable(product(one, other) for one, other in combinations(pins.values(), 2))
    pairs = (one | other for one, other in islice(met, 10 * most) if _agree(one, other))
    shelves = _Shelves(spec)
    seen: set[tuple[str, ...]] = set()
    for pinned in chain(islice(pairs, most), chain.from_iterable(pins.values())):
        combination = shelves.take(pinned)
        if combination is None:
            continue
        key = (*combination.cell.labels.values(), "", *combination.candidate.labels.values())
        if key not in seen:
            seen.add(key)
            yield combination


def _few(spec: Spec, most: int) -> bool:
    """Whether all combinations can be looked at; stops counting once they are too many."""
    total = 0
    for cell in islice(cells_of(spec), most + 1):
        total += count(spec.tune, cell.labels, most)
        if total > most:
            return False
    return True


def _pins(name: str, axis: Axis) -> Iterator[dict[str, str]]:
    """For each alternative the labels that a combination needs to hold it."""
    for group in axis:
        needed = {other: labels[0] for other, labels in group.when.items() if labels}
        for choice in group.choices:
            yield {**needed, name: choice.label}


def _agree(one: dict[str, str], other: dict[str, str]) -> bool:
    return all(other.get(axis, label) == label for axis, label in one.items())


class _Shelves:
    """The alternatives of every group by label, so that one is found without looking at all."""

    def __init__(self, spec: Spec) -> None:
        self._compare = {name: _Shelf(axis) for name, axis in spec.compare.items()}
        self._tune = {name: _Shelf(axis) for name, axis in spec.tune.items()}

    def take(self, pins: dict[str, str]) -> Combination | None:
        """The first combination that holds the pinned labels, as far as these apply; none where there is none."""
        cell = _first(self._compare, {}, pins)
        candidate = _first(self._tune, cell.labels, pins) if cell else None
        return Combination(cell, candidate) if cell and candidate else None


class _Shelf:
    """The alternatives of an axis by label; what applies is looked up once for all labels that its groups name."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._named = named(axis)
        self._found: dict[tuple[str | None, ...], dict[str, Choice] | None] = {}

    def beside(self, labels: Labels) -> dict[str, Choice] | None:
        """Those that apply beside these labels, the first of namesakes; none where the axis does not apply."""
        key = tuple([labels.get(name) for name in self._named])
        if key not in self._found:
            effort.spend(sum(map(weight, self._axis)))
            applying = [group for group in self._axis if applies(group.when, labels)]
            found: dict[str, Choice] = {}
            for choice in (one for group in applying for one in group.choices):
                found.setdefault(choice.label, choice)
            self._found[key] = found if applying else None
        return self._found[key]


def _first(axes: dict[str, _Shelf], given: Labels, pins: dict[str, str]) -> Point | None:
    labels: dict[str, str] = {}
    choices: list[Choice] = []
    for name, shelf in axes.items():
        by_label = shelf.beside({**given, **labels})
        if by_label is not None:
            choice = by_label.get(pins.get(name, "")) or next(iter(by_label.values()), None)
            if choice is None:  # `only` or `without` took them all
                return None
            labels[name] = choice.label
            choices.append(choice)
    return Point(labels, tuple(choices))
