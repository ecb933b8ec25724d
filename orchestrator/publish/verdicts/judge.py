"""Better, worse, equivalent or unresolved: what paired differences say of a table's comparisons, all taken together."""

import hashlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final, Literal, TypeVar

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.verdicts.significance import ANY, MIN_PAIRS, Boundary, Prospect, Spending, boundary
from orchestrator.spec.layouts import Covers
from orchestrator.views.errors import timely
from orchestrator.views.runs import QuerySource, QuerySums, Statistic

AT_ONCE: Final = 8
"""Files whose scores are held at a time: SOP's have 60,000 queries."""

Arrays = Mapping[str, Any]
ArrayFiles = Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
"""The arrays of a data file by trial, and for each trial without them why that is."""

_SAID: Final = frozenset({"query", "class", "checkpoint", "data"})


def source(read: ArrayFiles) -> QuerySource:
    """The sums of trainings whose files are read by `read`."""

    def of(trials: Sequence[int], split: str) -> tuple[Mapping[int, QuerySums], Mapping[int, str]]:
        name = "queries" if split == "test" else f"queries-{split}"
        scores: dict[int, QuerySums] = {}
        missing: dict[int, str] = {}
        asked = list(dict.fromkeys(trials))
        for first in timely(range(0, len(asked), AT_ONCE)):
            some = asked[first : first + AT_ONCE]
            arrays, troubles = read(some, name)
            missing |= troubles
            for trial, held in arrays.items():
                try:
                    scores[trial] = summed(held)
                except (KeyError, ValueError, TypeError) as error:
                    reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
                    missing[trial] = f"{name}.npz of trial {trial} is not as it should be: {reason}"
        return scores, missing

    return of


def summed(arrays: Arrays) -> QuerySums:
    """What a file holds; raises KeyError for what it lacks and ValueError for what cannot be."""
    import numpy as np

    queries, classes = (_whole(arrays[name], name) for name in ("query", "class"))
    if len(classes) != len(queries):
        raise ValueError(f"{len(queries):,} queries have {len(classes):,} classes")
    numbers, places = np.unique(classes, return_inverse=True)
    sums = {}
    for name in sorted(arrays.keys() - _SAID):
        scores = np.asarray(arrays[name], dtype=np.float64)
        if scores.shape != queries.shape or not bool(np.isfinite(scores).all()):
            raise ValueError(
                f"{name[:60]!r} has the shape {[*scores.shape]} for {len(queries):,} queries, or no numbers"
            )
        sums[name] = np.bincount(places, weights=scores, minlength=len(numbers))
    data, checkpoint = str(arrays["data"]), str(arrays["checkpoint"])
    if checkpoint not in ("best", "last"):
        raise ValueError("its scores are neither of the best weights nor of the last")
    digest = hashlib.sha256(f"{data}\n".encode() + queries.tobytes() + classes.tobytes()).hexdigest()
    return QuerySums(digest, checkpoint, np.bincount(places, minlength=len(numbers)), sums)


def _whole(array: Any, name: str) -> Any:
    import numpy as np

    found = np.asarray(array)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise ValueError(
            f"{name!r} has the shape {[*found.shape]} of {found.dtype}, and is to be whole numbers in a row"
        )
    return np.ascontiguousarray(found, dtype=np.int64)


LEAST_CLASSES: Final = 2
"""Classes below which nothing tells how their queries vary."""


@dataclass(frozen=True, slots=True)
class QuerySpread:
    """The variances of a mean over runs and queries; all are of that mean, in squares of what the metric is in.

    Queries of a class are alike, so that classes are what was drawn (clusters; Miller 2024, arXiv 2411.00640, eq. 4;
    Liang & Zeger, Biometrika 73, 1986, 13-22). Every run answers the same queries: seeds are crossed with classes, as
    readers with cases in the comparison of two imaging methods (Dorfman, Berbaum & Metz, Invest Radiol 27, 1992,
    723-731).
    """

    runs: int
    classes: int
    queries: int
    seeds: float  # s^2 / runs of the runs' means; 0 for one run
    between: float  # by classes, of the mean of these very runs
    within: float  # of the two together: what a class does in one run alone; 0 for one run

    @property
    def persistent(self) -> float:
        """What the queries add however many runs there are."""
        return max(0.0, self.between - self.within)

    @property
    def both(self) -> float:
        """Over seeds and queries: seeds + between - within, at least either of the first two, which are parts of it."""
        return max(self.seeds + self.persistent, self.between)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of `both` (Satterthwaite, Biometrics Bull 2, 1946, 110-114), for 2 runs and more.

        Hillis (Stat Med 26, 2007, 596-619) has the term of the runs alone, which counts on many cases; with 5 classes
        its intervals are too narrow. A difference of variances can make the degrees
        vanish: they are those of the smaller sample at least.
        """
        runs, classes = self.runs - 1, self.classes - 1
        parts = self.seeds**2 / runs
        if self.both > self.seeds:
            parts += self.between**2 / classes + self.within**2 / (runs * classes)
        return max(self.both**2 / parts, min(runs, classes)) if parts else float(min(runs, classes))


def spread(sums: Sequence[Any], counts: Any) -> QuerySpread:
    """Of runs [n] of which each has the sum of its scores by class, and of the queries of each class: [classes] both.

    The scores of one cell, or the differences of two cells query by query. Raises ValueError for fewer than two classes
    with queries.
    """
    import numpy as np

    size, scores = np.asarray(counts, dtype=np.float64), np.asarray(sums, dtype=np.float64)
    runs, classes = scores.shape
    if classes < LEAST_CLASSES:
        raise ValueError(f"its queries are of {classes} class: {LEAST_CLASSES} are needed")
    share = size / size.sum()
    means = scores.sum(axis=1) / size.sum()
    apart = scores / size.sum() - share * means.mean()  # a linearized ratio: what each class moves the mean by
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
    """Half the 95 % interval of the mean by Student's t that covers `queries` or `both`; none for `both` of one run."""
    return None if covers == "both" and found.runs < 2 else needed(found, covers, 0.05)


def needed(found: QuerySpread, covers: str, p: float) -> float:
    """How far from zero the mean has to be for this p of two sides."""
    from scipy.special import stdtrit

    return max(float(-stdtrit(freedom, p / 2)) * sqrt(variance) for variance, freedom in _counted(found, covers))


def p_value(found: QuerySpread, covers: str, mean: float) -> float:
    """Of two sides, of a mean that is zero in truth; for a variance above zero."""
    from scipy.special import stdtr

    counted = [(variance, freedom) for variance, freedom in _counted(found, covers) if variance]
    return max(float(2 * stdtr(freedom, -abs(mean) / sqrt(variance))) for variance, freedom in counted)


def _counted(found: QuerySpread, covers: str) -> list[tuple[float, float]]:
    """Variances with their degrees of freedom.

    What covers both is never less wide than what covers either, though it may have more degrees of freedom.
    """
    queries = (found.between, float(found.classes - 1))
    if covers == "queries":
        return [queries]
    return [(found.both, found.freedom), (found.seeds, float(found.runs - 1)), queries]


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
    return one.spending.first if one.covers == "queries" else MIN_PAIRS


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
