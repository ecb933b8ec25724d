"""Which seeds to train next, so that most comparisons of a table are decided within a budget."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import ceil
from typing import Final, Generic, TypeVar

Place = TypeVar("Place")

LEAST_CHANCE: Final = 0.05
"""Of being decided by all that the budget leaves a comparison; below, its share goes to others."""

PAIRS: Final = 48
"""Seeds of a cell beyond which it is given none: nobody trains so many, and boundaries are exact up to there."""


@dataclass(frozen=True, slots=True)
class Question(Generic[Place]):
    """A comparison that is not decided."""

    place: Place
    cell: int
    baseline: int
    pairs: int  # seeds that both have
    needed: int | None  # further ones that decide it four times of five; none: more than anybody trains
    chance: Callable[[int], float] = field(default=lambda _: 1.0, repr=False, compare=False)  # by so many further ones


@dataclass(frozen=True, slots=True)
class Stock:
    """What of each cell is there."""

    seeds: Sequence[int]  # of any cell, in the order of the spec
    held: Mapping[int, frozenset[int]]  # by cell, whatever became of their trials
    hours: Mapping[int, float | None]  # that one more seed of a cell takes on one slot
    added: Mapping[int, int] = field(default_factory=dict)  # seeds that a cell was given so far

    def coming(self, *cells: int) -> Iterator[int]:
        """The seeds that not all of these cells have, those first that others have: so that cells share baselines."""
        yield from (one for one in self.seeds if not all(one in self.held.get(cell, ()) for cell in cells))
        yield from count(max(self.seeds, default=-1) + 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is left of a budget; none: no limit."""

    hours: float | None = None
    seeds: int | None = None  # for any one cell, with those that it was given so far


@dataclass(frozen=True, slots=True)
class Round(Generic[Place]):
    """The seeds that each cell is given next."""

    seeds: Mapping[int, Sequence[int]]
    hours: float | None  # on one slot; none where durations are not known
    left_out: Mapping[Place, str]  # the comparisons that get none, and why


def next_round(questions: Sequence[Question[Place]], stock: Stock, limits: Limits) -> Round[Place]:
    """Half of the seeds that each comparison seems to need, the cheapest first, as far as the budget goes.

    The whole need of those that are served is set aside, so that the budget is not scattered among comparisons none of
    which it can decide. Half, since after few pairs the need is a guess: with the other half it is asked anew.
    """
    drawing = _Drawing(stock, limits)
    left_out: dict[Place, str] = {}
    for one in sorted(questions, key=drawing.cost):
        if why := drawing.take(one):
            left_out[one.place] = why
    seeds = {cell: sorted(chosen, key=_order(stock)) for cell, chosen in sorted(drawing.now.items()) if chosen}
    return Round(seeds, drawing.hours(seeds), left_out)


def _order(stock: Stock) -> Callable[[int], int]:
    at = {seed: place for place, seed in enumerate(stock.seeds)}
    return lambda seed: at.get(seed, len(at) + seed)


class _Drawing:
    """Seeds on their way into a round: set aside for later ones, and taken now."""

    def __init__(self, stock: Stock, limits: Limits) -> None:
        self._stock, self._limits = stock, limits
        self._aside: dict[int, set[int]] = {}
        self.now: dict[int, set[int]] = {}

    def cost(self, one: Question[Place]) -> tuple[bool, float, int]:
        """By which the cheapest come first."""
        needed = PAIRS if one.needed is None else one.needed
        return one.needed is None, needed * self._pair(one), needed

    def hours(self, seeds: Mapping[int, Sequence[int] | set[int]]) -> float | None:
        """What seeds take, on one slot; none where that is not known of a cell."""
        each = [(self._stock.hours.get(cell), len(chosen)) for cell, chosen in seeds.items()]
        return sum(hours * number for hours, number in each if hours is not None) if _known(each) else None

    def take(self, one: Question[Place]) -> str:
        """Take what it needs; why not, where it is left out."""
        timed = all(self._stock.hours.get(cell) is not None for cell in (one.cell, one.baseline))
        if self._limits.hours is not None and not timed:
            return "how long its trainings take is not known, so that hours do not bound them; bound `seeds` instead"
        wanted = list(islice(self._within(one), PAIRS - one.pairs))
        if not wanted:
            return "the budget has no seed left for it"
        needed = one.needed
        if needed is None or needed > len(wanted):
            chance = one.chance(len(wanted))
            if chance < LEAST_CHANCE:
                more = "more than anybody trains" if needed is None else f"about {needed}"
                return f"needs {more}, the budget has {len(wanted)}: decided once of {_times(chance)}"
            needed = len(wanted)
        for place, seed in enumerate(wanted[:needed]):
            for cell in (one.cell, one.baseline):
                if seed not in self._stock.held.get(cell, ()):
                    self._aside.setdefault(cell, set()).add(seed)
                    if place < ceil(needed / 2):
                        self.now.setdefault(cell, set()).add(seed)
        return ""

    def _pair(self, one: Question[Place]) -> float:
        return sum(self._stock.hours.get(cell) or 0.0 for cell in (one.cell, one.baseline))

    def _within(self, one: Question[Place]) -> Iterator[int]:
        """The seeds that it may still be given, with those that are set aside."""
        added = {cell: set(self._aside.get(cell, ())) for cell in {*self._aside, one.cell, one.baseline}}
        for seed in self._stock.coming(one.cell, one.baseline):
            for cell in (one.cell, one.baseline):
                if seed not in self._stock.held.get(cell, ()):
                    added[cell].add(seed)
            if self._beyond(added, (one.cell, one.baseline)):
                return
            yield seed

    def _beyond(self, added: Mapping[int, set[int]], cells: tuple[int, int]) -> bool:
        most, hours = self._limits.seeds, self._limits.hours
        if any(len(self._stock.held.get(cell, ())) + len(added[cell]) > PAIRS for cell in cells):
            return True
        if most is not None and any(self._stock.added.get(cell, 0) + len(added[cell]) > most for cell in cells):
            return True
        taken = sum((self._stock.hours.get(cell) or 0.0) * len(seeds) for cell, seeds in added.items())
        return hours is not None and taken > hours


def _known(each: Sequence[tuple[float | None, int]]) -> bool:
    return all(hours is not None for hours, number in each if number)


def _times(chance: float) -> str:
    return f"{round(1 / chance)} times" if chance >= 0.01 else "more than 100 times"
