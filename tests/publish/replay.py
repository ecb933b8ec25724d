"""A resolution played on drawn numbers: what a budget decides, if cells are what they are supposed to be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from orchestrator.publish.verdicts.boundary import ANY, LEAST, Spending, planned
from orchestrator.publish.verdicts.judgement import CellVerdict, Evidence, Judged, judge
from orchestrator.publish.verdicts.rounds import PAIRS, Limits, Question, Stock, next_round


@dataclass(frozen=True, slots=True)
class Supposed:
    """A comparison whose truth is supposed."""

    cell: int
    baseline: int
    effect: float  # the true difference, cell - baseline
    std: float  # of a paired difference
    sign: int = 1  # -1 where lower is better
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """Who is given how many seeds when."""

    plan: int  # seeds before the first look, of a cell that has all
    limits: Limits  # hours are those beyond the plan
    any_time: bool = False  # whether the table's `looks` are `any`
    level: float = 0.05
    hours: Mapping[int, float] = field(default_factory=dict)  # of one seed, by cell
    uneven: Mapping[int, frozenset[int]] = field(default_factory=dict)  # seeds of cells that have others, counted on

    def held(self, cell: int) -> frozenset[int]:
        """The seeds of a cell at the end of the plan, as places in the order of the spec."""
        return self.uneven.get(cell, frozenset(range(self.plan)))

    def spending(self, one: Supposed) -> Spending:
        """What a comparison may spend of the level."""
        return ANY if self.any_time else planned(max(LEAST, len(self.held(one.cell) & self.held(one.baseline))))


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one play."""

    words: Sequence[Judged]
    right: Sequence[bool]  # whether what was decided is true
    seeds: Mapping[int, int]  # by cell
    rounds: int

    @property
    def trainings(self) -> int:
        """Over all cells."""
        return sum(self.seeds.values())


def resolved(random: Any, supposed: Sequence[Supposed], design: Design) -> Played:
    """Play rounds until nothing more can be decided; `random` is a generator of numpy."""
    world = World(random, supposed)
    cells = sorted({at for one in supposed for at in (one.cell, one.baseline)})
    held = {cell: set(design.held(cell)) for cell in cells}
    hours = {cell: design.hours.get(cell) for cell in cells}
    rounds = 0
    while True:
        verdicts = world.judged(held, design)
        open_ones = [_question(at, supposed[at], one) for at, one in enumerate(verdicts) if _open(one)]
        stock = Stock(
            seeds=range(max((max(seeds) + 1 for seeds in held.values() if seeds), default=0)),
            held={cell: frozenset(seeds) for cell, seeds in held.items()},
            hours=hours,
            added={cell: len(seeds - design.held(cell)) for cell, seeds in held.items()},
        )
        drawn = next_round(open_ones, stock, _left(design, stock))
        if not drawn.seeds:
            return world.played(verdicts, {cell: len(seeds) for cell, seeds in held.items()}, rounds)
        rounds += 1
        for cell, seeds in drawn.seeds.items():
            held[cell] |= set(seeds)


class World:
    """Runs of all cells by seed; a baseline's noise is in all comparisons with it."""

    def __init__(self, random: Any, supposed: Sequence[Supposed]) -> None:
        self._supposed = supposed
        shared: dict[int, float] = {}
        for one in supposed:
            shared[one.baseline] = min(shared.get(one.baseline, one.std**2 / 2), one.std**2 / 2)
        noise = {cell: random.standard_normal(PAIRS) * sqrt(share) for cell, share in sorted(shared.items())}
        self._differences = []
        for one in supposed:
            own = random.standard_normal(PAIRS) * sqrt(one.std**2 - shared[one.baseline])
            self._differences.append(one.effect + own - noise[one.baseline])

    def judged(self, held: Mapping[int, set[int]], design: Design) -> list[CellVerdict]:
        """The verdicts by the seeds that each cell has."""
        evidence = {
            at: Evidence(
                [float(numbers[seed]) for seed in sorted(held[one.cell] & held[one.baseline])],
                design.spending(one), one.sign, one.margin,
            )
            for at, (one, numbers) in enumerate(zip(self._supposed, self._differences, strict=True))
        }  # fmt: skip
        found = judge(evidence, design.level)
        return [found[at] for at in range(len(self._supposed))]

    def played(self, verdicts: Sequence[CellVerdict], seeds: Mapping[int, int], rounds: int) -> Played:
        """What came of it, beside what is true."""
        right = [_true(one, verdict.word) for one, verdict in zip(self._supposed, verdicts, strict=True)]
        return Played([one.word for one in verdicts], right, seeds, rounds)


def _open(one: CellVerdict) -> bool:
    return one.word == "unresolved" or (one.word == "untested" and one.pairs < LEAST)


def _question(at: int, one: Supposed, verdict: CellVerdict) -> Question[int]:
    if verdict.prospect is None:
        return Question(at, one.cell, one.baseline, verdict.pairs, LEAST - verdict.pairs)
    return Question(at, one.cell, one.baseline, verdict.pairs, verdict.more, verdict.prospect.chance)


def _left(design: Design, stock: Stock) -> Limits:
    if design.limits.hours is None:
        return design.limits
    spent = sum(number * (stock.hours[cell] or 0.0) for cell, number in stock.added.items())
    return Limits(design.limits.hours - spent, design.limits.seeds)


def _true(one: Supposed, word: Judged) -> bool:
    if word == "equivalent":
        return one.margin is not None and abs(one.effect) < one.margin
    return word not in ("better", "worse") or ((one.effect * one.sign > 0) == (word == "better") and one.effect != 0)
