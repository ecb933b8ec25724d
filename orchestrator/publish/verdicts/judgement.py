"""Better, worse, equivalent or unresolved: what paired differences say of a table's comparisons, all taken together."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from orchestrator.publish.statistics import statistic
from orchestrator.publish.verdicts.boundary import Boundary, boundary
from orchestrator.publish.verdicts.prospect import Prospect
from orchestrator.publish.verdicts.query_spread import QuerySpread, needed, p_value
from orchestrator.publish.verdicts.spending import ANY, LEAST, Spending
from orchestrator.spec.table import Covers
from orchestrator.views.outcomes import Statistic

Judged = Literal["better", "worse", "equivalent", "unresolved", "untested"]

_NOISE: Final = 1e-12  # what floats may differ by though they mean the same share
_ROUNDS: Final = 30  # of stepping down: to end sooner errs on the safe side, and each has a boundary to compute

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one comparison."""

    differences: Sequence[float] = ()  # own - baseline by pair
    spending: Spending = ANY
    sign: int = 1  # -1 where lower is better
    margin: float | None = None  # the smallest difference of interest
    obstacle: str = ""  # why nothing can be said, whatever the differences
    covers: Covers = "seeds"
    beside: QuerySpread | None = None  # of the same differences query by query, where it covers queries


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """Whether a cell is better than its baseline; differences as the metric has them, shares as fractions."""

    word: Judged
    reason: str = ""  # why it is untested
    pairs: int = 0
    difference: float | None = None  # the mean of own - baseline
    interval: tuple[float, float] | None = None  # of it: holds for all comparisons and looks of the table at once
    p: float | None = None  # of the paired t-test by itself: neither corrected nor sequential
    needs: float | None = None  # below which that p has to be here, after correction and looks
    spent: float = 0.0  # the share of the level that looks so far may have spent
    more: int | None = None  # seeds that would decide it; none: decided, or beyond what is planned for
    prospect: Prospect | None = field(default=None, repr=False, compare=False)  # none: untested
    covers: Covers = "seeds"
    beside: QuerySpread | None = None  # where it covers queries


@dataclass(frozen=True, slots=True)
class _Tested:
    evidence: Evidence
    mean: float
    std: float
    pairs: int = field(default=0)

    @property
    def error(self) -> float:
        return self.std / math.sqrt(self.pairs)

    def boundary(self, level: float) -> Boundary:
        return boundary(level, self.evidence.spending)

    def needs(self, level: float) -> float:
        """The p of two sides below which a difference counts.

        That of seeds is exact. With queries beside them looks depend on one another even more, since all have the same
        queries: then the same p counts. Of queries alone each look is a test of its own (Bonferroni).
        """
        from scipy.special import stdtr

        if self.evidence.covers == "queries":
            return self.boundary(level).new(self.pairs)
        return float(2 * stdtr(self.pairs - 1, -self.boundary(level).at(self.pairs)))

    def half(self, level: float) -> float:
        """How far from zero the mean difference has to be."""
        beside = self.evidence.beside
        if beside is None:
            return self.boundary(level).at(self.pairs) * self.error
        p = self.needs(level)
        return needed(beside, self.evidence.covers, p) if p else math.inf

    @property
    def p(self) -> float:
        """Of two sides, neither corrected nor sequential."""
        from scipy.special import stdtr

        if self.evidence.beside is not None:
            return p_value(self.evidence.beside, self.evidence.covers, self.mean)
        return float(2 * stdtr(self.pairs - 1, -abs(self.mean) / self.error))

    def differs(self, level: float) -> bool:
        if self.evidence.beside is not None:
            return abs(self.mean) >= self.half(level)
        return abs(self.mean) / self.error >= self.boundary(level).at(self.pairs)

    def equals(self, level: float) -> bool:
        """Two one-sided tests (Schuirmann 1987, J Pharmacokinet Biopharm 15, 657-680), each at `level`.

        One side of a boundary of two sides at twice the level: whoever is on one side early is hardly ever on the
        other one later.
        """
        margin = self.evidence.margin
        if margin is None:
            return False
        if self.evidence.beside is not None:
            return margin - abs(self.mean) >= self.half(2 * level)
        return (margin - abs(self.mean)) / self.error >= self.boundary(2 * level).at(self.pairs)

    def prospect(self, step: float, share: float) -> Prospect:
        """Where it stands before what it has to cross: `step` by Holm, `share` of all comparisons at once."""
        boundaries = self.boundary(step), self.boundary(2 * share), self.boundary(share)
        beside = self.evidence.beside
        floor = 0.0 if beside is None else beside.persistent
        if self.evidence.covers == "queries":
            floor = math.inf  # no further seed tells anything of queries
        return Prospect(self.mean, self.std, self.pairs, *boundaries, self.evidence.margin, floor)


def judge(comparisons: Mapping[Place, Evidence], level: float) -> dict[Place, CellVerdict]:
    """The verdicts of a table, of which any is wrong (better, worse) with probability `level` at most.

    Holm's step-down method (Scand J Stat 6, 1979, 65-70) over the boundaries of all comparisons: that of Ye, Li, Liu
    & Yao (Stat Med 32, 2013, 1112-1124) for group-sequential tests, which needs boundaries that rise as the level
    falls. All comparisons that the table declares count, those without data too, as more data may come. Equivalence
    is judged at level / comparisons, and a difference that is surely below the margin is equivalent even where it is
    surely not zero.
    """
    tested = {place: test for place, one in comparisons.items() if (test := _tested(one)) is not None}
    count = max(1, len(comparisons))
    differing: set[Place] = set()
    step = level / count
    for _ in range(_ROUNDS):
        step = level / max(1, count - len(differing))
        crossed = {place for place, one in tested.items() if place not in differing and one.differs(step)}
        if not crossed:
            break
        differing |= crossed
    return {
        place: _verdict(tested[place], place in differing, step, level / count)
        if place in tested
        else CellVerdict("untested", _reason(one), len(one.differences), _mean(one), covers=one.covers)
        for place, one in comparisons.items()
    }


def _tested(one: Evidence) -> _Tested | None:
    if one.obstacle or len(one.differences) < _least(one):
        return None
    found = statistic(one.differences)
    if one.covers == "queries" and one.beside is not None:
        return _Tested(one, found.mean, found.std or 0.0, found.n) if one.beside.between > _NOISE**2 else None
    if found.std is None or _still(one.differences, found):
        return None
    return _Tested(one, found.mean, found.std, found.n)


def _least(one: Evidence) -> int:
    """How many pairs are needed before anything is said."""
    return one.spending.first if one.covers == "queries" else LEAST


def _still(differences: Sequence[float], found: Statistic) -> bool:
    return found.std is None or found.std <= _NOISE * max(1.0, *map(abs, differences))


def _reason(one: Evidence) -> str:
    if one.obstacle:
        return one.obstacle
    pairs = len(one.differences)
    if not pairs:
        return "no seed that both have"
    if pairs < _least(one):
        return f"{pairs} seed{'s' * (pairs > 1)} that both have, {_least(one)} are needed"
    if one.covers == "queries":
        return "no variation: the difference is the same with every class of queries"
    return "no variation: the difference is the same with every seed"


def _mean(one: Evidence) -> float | None:
    return math.fsum(one.differences) / len(one.differences) if one.differences else None


def _verdict(one: _Tested, differs: bool, step: float, share: float) -> CellVerdict:
    word: Judged = "unresolved"
    if one.equals(share):
        word = "equivalent"
    elif differs:
        word = "better" if one.mean * one.evidence.sign > 0 else "worse"
    half = one.half(share)
    prospect = one.prospect(step, share)
    seeds_tell = word == "unresolved" and one.evidence.covers != "queries"
    return CellVerdict(
        word,
        pairs=one.pairs,
        difference=one.mean,
        interval=(one.mean - half, one.mean + half) if math.isfinite(half) else None,
        p=one.p,
        needs=one.needs(step),
        spent=one.evidence.spending.spent(one.pairs),
        more=prospect.more() if seeds_tell else None,
        prospect=prospect,
        covers=one.evidence.covers,
        beside=one.evidence.beside,
    )
