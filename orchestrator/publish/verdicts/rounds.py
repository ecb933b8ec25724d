"""Chooses the seeds to train next, so that most comparisons of a table are decided within a budget."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import ceil
from typing import Final, Generic, TypeVar

from orchestrator.publish.verdicts.significance import EXACT
from orchestrator.views.evidence import ResolutionBudget

Place = TypeVar("Place")

_LEAST_CHANCE: Final = 0.05
"""The least chance to be decided within the budget; below it, a comparison gets no seeds."""


@dataclass(frozen=True, slots=True)
class Question(Generic[Place]):
    """A comparison of two cells that is not decided yet."""

    place: Place
    cell: int
    baseline: int
    pairs: int  # seeds that both have
    needed: int | None  # further seeds that decide it with probability 0.8; `None` if they are too many
    chance: Callable[[int], float] = field(default=lambda _: 1.0, repr=False, compare=False)  # with so many more seeds


@dataclass(frozen=True, slots=True)
class Stock:
    """The seeds that cells already have, and the cost of further seeds."""

    seeds: Sequence[int]  # of any cell, in the order of the spec
    seeds_of: Mapping[int, frozenset[int]]  # by cell, whatever the state of their trials
    hours: Mapping[int, float | None]  # of one more seed of a cell on one slot
    added: Mapping[int, int] = field(default_factory=dict)  # seeds added to a cell so far

    def coming(self, *cells: int) -> Iterator[int]:
        """The seeds to add next; first those that other cells already have, so that cells share baselines."""
        yield from (seed for seed in self.seeds if self.lacking(seed, cells))
        yield from count(max(self.seeds, default=-1) + 1)

    def lacking(self, seed: int, cells: Sequence[int]) -> list[int]:
        """The cells that do not have a seed."""
        return [cell for cell in cells if seed not in self.seeds_of.get(cell, ())]


@dataclass(frozen=True, slots=True)
class Round(Generic[Place]):
    """The seeds that each cell gets in the next round of a resolution."""

    seeds: Mapping[int, Sequence[int]]
    hours: float | None  # on one slot; `None` if durations are unknown
    left_out: Mapping[Place, str]  # why a comparison gets no seeds


def next_round(questions: Sequence[Question[Place]], stock: Stock, budget: ResolutionBudget) -> Round[Place]:
    """Plans half of the seeds that each open comparison seems to need, the cheapest first, within the budget.

    The other half is reserved, so that the budget is not scattered among comparisons that it cannot decide. After few
    pairs the need is a guess; once the first half has trained it is estimated again. `budget` holds the hours that are
    left, and the seeds for any single cell, including those added so far.
    """
    draft = _Draft(stock, budget)
    left_out: dict[Place, str] = {}
    for question in sorted(questions, key=draft.cost):
        if why := draft.take(question):
            left_out[question.place] = why
    at = {seed: place for place, seed in enumerate(stock.seeds)}
    seeds = {
        cell: sorted(chosen, key=lambda seed: at.get(seed, len(at) + seed))
        for cell, chosen in sorted(draft.now.items())
    }
    hours = [(stock.hours.get(cell), len(chosen)) for cell, chosen in seeds.items()]
    known = all(each is not None for each, _ in hours)
    total = sum(each * number for each, number in hours if each is not None)
    return Round(seeds, total if known else None, left_out)


class _Draft:
    """The seeds of a round so far."""

    def __init__(self, stock: Stock, budget: ResolutionBudget) -> None:
        self._stock, self._budget = stock, budget
        self._reserved: defaultdict[int, set[int]] = defaultdict(set)
        self.now: defaultdict[int, set[int]] = defaultdict(set)

    def cost(self, question: Question[Place]) -> tuple[bool, float, int]:
        needed = EXACT if question.needed is None else question.needed
        hours = sum(self._stock.hours.get(cell) or 0.0 for cell in (question.cell, question.baseline))
        return question.needed is None, needed * hours, needed

    def take(self, question: Question[Place]) -> str:
        """Take the seeds that a comparison needs; the reason if it gets none."""
        cells = question.cell, question.baseline
        if self._budget.hours is not None and any(self._stock.hours.get(cell) is None for cell in cells):
            return "how long its trainings take is not known, so that hours do not bound them; bound `seeds` instead"
        wanted = list(islice(self._within(cells), EXACT - question.pairs))
        if not wanted:
            return "the budget has no seed left for it"
        needed = question.needed
        if needed is None or needed > len(wanted):
            chance = question.chance(len(wanted))
            if chance < _LEAST_CHANCE:
                more = f"more than {EXACT}" if needed is None else f"about {needed}"
                likely = f"{100 * chance:.0f} %" if chance >= 0.01 else "less than 1 %"
                return f"needs {more} seeds; the {len(wanted)} of the budget decide it with a probability of {likely}"
            needed = len(wanted)
        for place, seed in enumerate(wanted[:needed]):
            for cell in self._stock.lacking(seed, cells):
                self._reserved[cell].add(seed)
                if place < ceil(needed / 2):
                    self.now[cell].add(seed)
        return ""

    def _within(self, cells: tuple[int, int]) -> Iterator[int]:
        """The next seeds of both cells that the budget leaves."""
        stock, budget = self._stock, self._budget
        added = {cell: set(self._reserved[cell]) for cell in {*self._reserved, *cells}}
        for seed in stock.coming(*cells):
            for cell in stock.lacking(seed, cells):
                added[cell].add(seed)
            if any(len(stock.seeds_of.get(cell, ())) + len(added[cell]) > EXACT for cell in cells):
                return
            if budget.seeds is not None and any(stock.added.get(at, 0) + len(added[at]) > budget.seeds for at in cells):
                return
            taken = sum((stock.hours.get(cell) or 0.0) * len(seeds) for cell, seeds in added.items())
            if budget.hours is not None and taken > budget.hours:
                return
            yield seed
