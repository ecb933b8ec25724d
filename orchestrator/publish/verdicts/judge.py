"""Judges the comparisons of a table, all taken together: better, worse, equivalent or no clear difference."""

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final, Literal, TypeVar

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.verdicts.significance import (
    ANY,
    MIN_PAIRS,
    Boundary,
    SeedsNeeded,
    Spending,
    boundary,
    critical_t,
    two_sided,
)
from orchestrator.spec.layouts import Covers
from orchestrator.views.errors import timely
from orchestrator.views.runs import QuerySource, QuerySums
from workers.contract import NO_METRICS

AT_ONCE: Final = 8
"""Files whose scores are in memory at a time; a file of SOP has 60,000 queries."""

Arrays = Mapping[str, Any]
ArrayFiles = Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
"""The arrays of a data file by trial, and for each trial without them the reason."""

Judged = Literal["better", "worse", "equivalent", "no clear difference", "untested"]

_NOISE: Final = 1e-12  # rounding errors of shares
_ROUNDS: Final = 30  # of stepping down; each computes a boundary, and ending sooner errs on the safe side

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QuerySpread:
    """The variances of a mean over runs and test queries, in the squared unit of the metric.

    Queries of a class are alike, so classes are the sampled clusters (Miller 2024, arXiv 2411.00640, eq. 4; Liang &
    Zeger, Biometrika 73, 1986, 13-22). Every run answers the same queries: seeds are crossed with classes, as readers
    with cases in the comparison of two imaging methods (Dorfman, Berbaum & Metz, Invest Radiol 27, 1992, 723-731).
    """

    runs: int
    classes: int
    queries: int
    seeds: float  # s^2 / runs of the runs' means; 0 for one run
    between: float  # by classes, of the mean of these runs
    within: float  # the interaction: the effect of a class in one run alone; 0 for one run

    @property
    def persistent(self) -> float:
        """The part of the variance that comes from test queries and that more runs do not reduce."""
        return max(0.0, self.between - self.within)

    @property
    def both(self) -> float:
        """The variance over seeds and queries: seeds + between - within, and no less than either of the first two."""
        return max(self.seeds + self.persistent, self.between)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of `both` (Satterthwaite, Biometrics Bull 2, 1946, 110-114), for 2 runs and more.

        Hillis (Stat Med 26, 2007, 596-619) has the term of the runs alone, which relies on many cases; with 5 classes
        its intervals are too narrow. A difference of variances can make the degrees vanish, so they are at least those
        of the smaller sample.
        """
        runs, classes = self.runs - 1, self.classes - 1
        parts = self.seeds**2 / runs
        if self.both > self.seeds:
            parts += self.between**2 / classes + self.within**2 / (runs * classes)
        return max(self.both**2 / parts, min(runs, classes)) if parts else float(min(runs, classes))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data on which the verdict of one comparison rests."""

    differences: Sequence[float] = ()  # own - baseline by pair
    spending: Spending = ANY
    sign: int = 1  # -1 if lower is better
    margin: float | None = None  # the smallest difference of interest
    obstacle: str = ""  # why nothing can be judged, whatever the differences
    covers: Covers = "seeds"
    spread: QuerySpread | None = None  # of the same differences query by query, if it covers queries


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The verdict on a cell against its baseline; differences are in the metric's unit, shares as fractions."""

    word: Judged
    reason: str = ""  # why it is untested
    pairs: int = 0
    difference: float | None = None  # the mean of own - baseline
    interval: tuple[float, float] | None = None  # of it: holds for all comparisons and looks of the table at once
    p: float | None = None  # of the paired t-test alone: neither corrected nor sequential
    needs: float | None = None  # the bound for that p after correction and looks
    spent: float = 0.0  # the share of the level that looks so far may have spent
    more: int | None = None  # seeds that would decide it; `None` if it is decided or needs too many
    seeds_needed: SeedsNeeded | None = field(default=None, repr=False, compare=False)  # `None` if untested
    covers: Covers = "seeds"
    spread: QuerySpread | None = None  # if it covers queries


def judge(comparisons: Mapping[Place, Evidence], level: float) -> dict[Place, CellVerdict]:
    """Gives the verdicts of a table's comparisons; any *better* or *worse* is wrong with probability `level` at most.

    Holm's step-down method (Scand J Stat 6, 1979, 65-70) over the boundaries of all comparisons, as Ye, Li, Liu & Yao
    (Stat Med 32, 2013, 1112-1124) have it for group-sequential tests; it needs boundaries that rise as the level falls.
    All comparisons that the table declares count, even without data, since more data may come. Equivalence is judged at
    level / comparisons; a difference that is surely below the margin is equivalent even if it is surely not zero.
    """
    tested = {place: test for place, evidence in comparisons.items() if (test := _tested(evidence)) is not None}
    count = max(1, len(comparisons))
    differing: set[Place] = set()
    step = level / count
    for _ in range(_ROUNDS):
        step = level / max(1, count - len(differing))
        crossed = {place for place, test in tested.items() if abs(test.mean) >= test.half(step)} - differing
        if not crossed:
            break
        differing |= crossed
    return {
        place: _verdict(tested[place], place in differing, step, level / count)
        if place in tested
        else _untested(evidence)
        for place, evidence in comparisons.items()
    }


@dataclass(frozen=True, slots=True)
class _Tested:
    evidence: Evidence
    mean: float
    std: float
    pairs: int

    @property
    def error(self) -> float:
        return self.std / math.sqrt(self.pairs)

    def boundary(self, level: float) -> Boundary:
        return boundary(level, self.evidence.spending)

    def needs(self, level: float) -> float:
        """The two-sided p below which a difference is significant.

        It is exact for seeds. For seeds and queries the same p holds, since looks depend on one another even more: all
        have the same queries. For queries alone each look is a test of its own (Bonferroni).
        """
        if self.evidence.covers == "queries":
            return self.boundary(level).new(self.pairs)
        return two_sided(self.boundary(level).at(self.pairs), self.pairs - 1)

    def half(self, level: float) -> float:
        """The distance from zero that the mean difference needs."""
        spread = self.evidence.spread
        if spread is None:
            return self.boundary(level).at(self.pairs) * self.error
        p = self.needs(level)
        return needed(spread, self.evidence.covers, p) if p else math.inf

    @property
    def p(self) -> float:
        if self.evidence.spread is None:
            return two_sided(self.mean / self.error, self.pairs - 1)
        variances = _variances(self.evidence.spread, self.evidence.covers)
        return max(two_sided(self.mean / sqrt(variance), freedom) for variance, freedom in variances if variance)

    def equals(self, level: float) -> bool:
        """Two one-sided tests (Schuirmann 1987, J Pharmacokinet Biopharm 15, 657-680), each at `level`.

        Each uses one side of a two-sided boundary at twice the level, since a difference hardly ever crosses both.
        """
        margin = self.evidence.margin
        return margin is not None and margin - abs(self.mean) >= self.half(2 * level)

    def seeds_needed(self, step: float, share: float) -> SeedsNeeded:
        """The boundaries that it has yet to cross: `step` by Holm, `share` of all comparisons at once."""
        boundaries = self.boundary(step), self.boundary(2 * share), self.boundary(share)
        spread = self.evidence.spread
        floor = 0.0 if spread is None else spread.persistent
        if self.evidence.covers == "queries":
            floor = math.inf  # further seeds do not help
        return SeedsNeeded(self.mean, self.std, self.pairs, *boundaries, self.evidence.margin, floor)


def _tested(evidence: Evidence) -> _Tested | None:
    """What can be tested; `None` if there are too few pairs or they do not vary."""
    differences, spread = evidence.differences, evidence.spread
    if evidence.obstacle or len(differences) < _least(evidence):
        return None
    found = statistic(differences)
    if evidence.covers == "queries" and spread is not None:
        varies = spread.between > _NOISE**2
    else:
        varies = found.std is not None and found.std > _NOISE * max(1.0, *map(abs, differences))
    return _Tested(evidence, found.mean, found.std or 0.0, found.n) if varies else None


def _least(one: Evidence) -> int:
    return one.spending.first if one.covers == "queries" else MIN_PAIRS


def _verdict(test: _Tested, differs: bool, step: float, share: float) -> CellVerdict:
    evidence = test.evidence
    word: Judged = "no clear difference"
    if test.equals(share):
        word = "equivalent"
    elif differs:
        word = "better" if test.mean * evidence.sign > 0 else "worse"
    half = test.half(share)
    seeds_needed = test.seeds_needed(step, share)
    return CellVerdict(
        word,
        pairs=test.pairs,
        difference=test.mean,
        interval=(test.mean - half, test.mean + half) if math.isfinite(half) else None,
        p=test.p,
        needs=test.needs(step),
        spent=evidence.spending.spent(test.pairs),
        more=seeds_needed.more() if word == "no clear difference" and evidence.covers != "queries" else None,
        seeds_needed=seeds_needed,
        covers=evidence.covers,
        spread=evidence.spread,
    )


def _untested(evidence: Evidence) -> CellVerdict:
    pairs = len(evidence.differences)
    if evidence.obstacle:
        reason = evidence.obstacle
    elif not pairs:
        reason = "no seed that both have"
    elif pairs < _least(evidence):
        reason = f"{pairs} seed{'s' * (pairs > 1)} that both have, {_least(evidence)} are needed"
    else:
        alike = "class of queries" if evidence.covers == "queries" else "seed"
        reason = f"no variation: the difference is the same with every {alike}"
    mean = math.fsum(evidence.differences) / pairs if pairs else None
    return CellVerdict("untested", reason, pairs, mean, covers=evidence.covers)


def needed(found: QuerySpread, covers: str, p: float) -> float:
    """The distance from zero at which a mean of this spread has the two-sided p-value `p`."""
    return max(critical_t(p, freedom) * sqrt(variance) for variance, freedom in _variances(found, covers))


def _variances(found: QuerySpread, covers: str) -> list[tuple[float, float]]:
    """The variances that count, with their degrees of freedom.

    The largest result counts: an interval for both is never narrower than for either, despite its degrees of freedom.
    """
    queries = (found.between, float(found.classes - 1))
    if covers == "queries":
        return [queries]
    return [(found.both, found.freedom), (found.seeds, float(found.runs - 1)), queries]


def source(read: ArrayFiles) -> QuerySource:
    """A source of per-query scores, summed by class, from the files that `read` reads."""

    def of(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        name = file_of(split)
        scores: dict[int, QuerySums] = {}
        missing: dict[int, str] = {}
        unique = list(dict.fromkeys(trials))
        for first in timely(range(0, len(unique), AT_ONCE)):
            arrays, reasons = read(unique[first : first + AT_ONCE], name)
            missing |= reasons
            for trial, held in arrays.items():
                try:
                    scores[trial] = summed(held)
                except (KeyError, ValueError, TypeError) as error:
                    reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
                    missing[trial] = f"{name}.npz of trial {trial} is not as it should be: {reason}"
        return scores, missing

    return of


def file_of(split: str) -> str:
    """The name, without suffix, of a training's file with the per-query scores of a split."""
    return "queries" if split == "test" else f"queries-{split}"


def summed(arrays: Arrays) -> QuerySums:
    """Sums per-query scores of a data file by class; KeyError for a missing array, ValueError for a wrong array."""
    import numpy as np

    queries, classes = (integers(arrays[name], name) for name in ("query", "class"))
    if len(classes) != len(queries):
        raise ValueError(f"the array `query` has {len(queries):,} entries, but `class` has {len(classes):,}")
    numbers, places = np.unique(classes, return_inverse=True)
    sums = {}
    for name in sorted(arrays.keys() - NO_METRICS):
        scores = np.asarray(arrays[name], dtype=np.float64)
        if scores.shape != queries.shape or not bool(np.isfinite(scores).all()):
            raise ValueError(
                f"the array {name[:60]!r} has the shape {[*scores.shape]}; expected numbers [{len(queries)}]"
            )
        sums[name] = np.bincount(places, weights=scores, minlength=len(numbers))
    data, checkpoint = str(arrays["data"]), str(arrays["checkpoint"])
    if checkpoint not in ("best", "last"):
        raise ValueError("it has scores of neither the best nor the last checkpoint")
    digest = hashlib.sha256(f"{data}\n".encode() + queries.tobytes() + classes.tobytes()).hexdigest()
    return QuerySums(digest, checkpoint, np.bincount(places, minlength=len(numbers)), sums)


def integers(array: Any, name: str) -> Any:
    """Checks that the array `name` is a row of whole numbers and returns it as int64; otherwise raises ValueError."""
    import numpy as np

    found = np.asarray(array)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise ValueError(f"the array {name!r} is {found.dtype} {[*found.shape]}; expected integers [n]")
    return np.ascontiguousarray(found, dtype=np.int64)


def spread(sums: Sequence[Any], counts: Any) -> QuerySpread:
    """The variances of a mean, from scores summed by class [runs, classes] and the queries per class [classes].

    Scores are those of one cell, or the differences of two cells query by query. Raises ValueError for fewer than two
    classes with queries.
    """
    import numpy as np

    size, scores = np.asarray(counts, dtype=np.float64), np.asarray(sums, dtype=np.float64)
    runs, classes = scores.shape
    if classes < 2:
        raise ValueError(f"the queries have {classes} class; a spread needs at least 2")
    share = size / size.sum()
    means = scores.sum(axis=1) / size.sum()
    apart = scores / size.sum() - share * means.mean()  # a linearized ratio: the effect of each class on the mean
    by_class = apart.mean(axis=0)
    few = classes / (classes - 1)
    between = few * float(np.square(by_class).sum())
    seeds = within = 0.0
    if runs > 1:
        of_means = means - means.mean()
        rest = apart - by_class - share * of_means[:, None]
        pairs = runs * (runs - 1)
        seeds = float(np.square(of_means).sum()) / pairs
        within = few * float(np.square(rest).sum()) / pairs
    return QuerySpread(runs, classes, int(size.sum()), seeds, between, within)


def half_width(found: QuerySpread, covers: str) -> float | None:
    """Half the 95 % Student-t interval of a mean that covers `queries` or `both`; `None` for `both` with one run."""
    return None if covers == "both" and found.runs < 2 else needed(found, covers, 0.05)
