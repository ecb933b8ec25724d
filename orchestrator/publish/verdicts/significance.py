"""Paired tests of a cell against its baseline, corrected for the number of tests and of looks."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, pi
from statistics import NormalDist
from threading import Lock
from typing import Any, Final, Literal, TypeVar

from orchestrator.publish import aggregate
from orchestrator.views.runs import Statistic

Test = Literal["t", "wilcoxon"]

LEVEL: Final = 0.05
"""The level at which a difference is marked, after the correction."""
MIN_RUNS: Final[Mapping[Test, int]] = {"t": 3, "wilcoxon": 6}
"""Pairs that a test needs: with fewer, no signed ranks of two sides reach the level."""
HIGHER, LOWER = "↑", "↓"

_NAMES: Final[Mapping[Test, str]] = {"t": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test"}
_MOST_TIED: Final = 50  # differences; from there on scipy takes the normal distribution anyway
_NOISE: Final = 1e-12  # what floats may differ by though they mean the same share

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric of a cell beside that of its baseline, run by run."""

    baseline: int  # the cell that it is compared with
    n: int  # pairs: runs of both that have the same repeat labels
    difference: float | None  # the mean of own - baseline over the pairs, as a fraction; none without a pair
    p: float | None = None  # two-sided; none where nothing could be tested
    corrected: float | None = None  # by Holm's method within the table

    @property
    def sign(self) -> str:
        """The mark of a significant difference: which way it goes; "" where there is none."""
        if self.corrected is None or self.corrected >= LEVEL or not self.difference:
            return ""
        return HIGHER if self.difference > 0 else LOWER


def compare(own: Mapping[Place, float], base: Mapping[Place, float], baseline: int, test: Test) -> Comparison:
    """The runs of a cell beside those of its baseline, by what a pair shares; not corrected yet."""
    pairs = [(value, base[place]) for place, value in own.items() if place in base]
    if not pairs:
        return Comparison(baseline, 0, None)
    differences = [mine - theirs for mine, theirs in pairs]
    mean = math.fsum(differences) / len(pairs)
    size = max(abs(value) for pair in pairs for value in pair)
    p = _p(differences, size * _NOISE, test) if len(pairs) >= MIN_RUNS[test] else None
    return Comparison(baseline, len(pairs), mean, p)


def paired_t(differences: Sequence[float], noise: float = 0.0) -> float | None:
    """The two-sided p of a paired t-test; none where the differences do not vary by more than `noise`."""
    found = aggregate.statistic(differences)
    if found.std is None or found.std <= noise:
        return None
    from scipy.special import stdtr  # only now: it takes half a second, and most tables test nothing

    t = found.mean / (found.std / math.sqrt(found.n))
    return float(2 * stdtr(found.n - 1, -abs(t)))


def wilcoxon(differences: Sequence[float], noise: float = 0.0) -> float | None:
    """The two-sided p of Wilcoxon's signed-rank test, zeros left out; none where no difference is above `noise`."""
    # Rounded, so that equal differences share a rank whatever their last bits are.
    moved = [round(one, 12) for one in differences if abs(one) > noise and round(one, 12)]
    if not moved:
        return None
    if len({abs(one) for one in moved}) < len(moved) <= _MOST_TIED:
        return _tied(moved)
    from scipy.stats import wilcoxon as signed_ranks  # only now: scipy.stats takes a second

    return float(signed_ranks(moved).pvalue)


def _tied(moved: Sequence[float]) -> float:
    """The exact p where differences share their size: scipy's by permutation takes half a second for 12 of them."""
    sizes = sorted(abs(one) for one in moved)
    # Twice the mean rank of those that are alike, which is whole.
    rank = {size: 2 * sizes.index(size) + sizes.count(size) + 1 for size in set(sizes)}
    ways = {0: 1}  # by the sum of the ranks above zero: how many choices of signs give it
    for size in sizes:
        ways = {
            total: ways.get(total, 0) + ways.get(total - rank[size], 0)
            for total in {*ways, *(sum_ + rank[size] for sum_ in ways)}
        }
    above = sum(rank[abs(one)] for one in moved if one > 0)
    least = min(above, sum(rank[size] for size in sizes) - above)
    return min(1.0, 2 * sum(times for total, times in ways.items() if total <= least) / 2.0 ** len(sizes))


def words(found: Collection[Comparison], test: Test, baseline: str, noun: str = "seed") -> str:
    """What a caption says of the tests of a table against `baseline`, and why there are none where there are none.

    `noun` is what the runs of a pair share.
    """
    if not found:
        return f"Nothing is compared with {baseline}: there are no finished runs of both."
    tested = [one for one in found if one.p is not None]
    few = sum(one.n < MIN_RUNS[test] for one in found)
    if not tested:
        if few:
            most = max(one.n for one in found)
            reason = f"the {_NAMES[test]} needs {MIN_RUNS[test]} {noun}s that both have, there are {most}"
        else:
            reason = "the differences do not vary between runs"
        return f"No difference from {baseline} could be tested: {reason}."
    said = [
        f"Compared with {baseline} run by run: two-sided {_NAMES[test]} on {_span(tested)} pairs with the same {noun}, "
        f"p < {LEVEL} after Holm's correction for {_counted(len(tested))}."
    ]
    least = 2.0 ** (1 - max(one.n for one in tested)) * len(tested)
    if test == "wilcoxon" and least >= LEVEL:
        said.append("No mark is possible: with so few pairs no corrected p falls below the level.")
    if left := len(found) - len(tested):
        reasons = [f"{few} with fewer than {MIN_RUNS[test]} pairs"] if few else []
        reasons += [f"{left - few} without variation"] if left > few else []
        said.append(f"Not tested: {' and '.join(reasons)}.")
    return " ".join(said)


def meanings(found: Collection[Comparison], test: Test, baseline: str) -> list[tuple[str, str]]:
    """The marks that occur, with what they mean."""
    number = _counted(sum(one.p is not None for one in found))
    said = f"than {baseline} at the level {LEVEL} ({_NAMES[test]}, two-sided, Holm-corrected for {number})"
    occurring = {one.sign for one in found}
    both = ((HIGHER, "higher"), (LOWER, "lower"))
    return [(sign, f"significantly {word} {said}") for sign, word in both if sign in occurring]


def _p(differences: Sequence[float], noise: float, test: Test) -> float | None:
    return paired_t(differences, noise) if test == "t" else wilcoxon(differences, noise)


def _span(found: Collection[Comparison]) -> str:
    sizes = sorted({one.n for one in found})
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _counted(number: int) -> str:
    return "1 comparison" if number == 1 else f"{number} comparisons"


Word = Literal["higher", "lower", "not told apart", "untested"]

IMPORTED_HIGHER: Final = "⇑"
IMPORTED_LOWER: Final = "⇓"


@dataclass(frozen=True, slots=True)
class ImportedComparison:
    """An imported number beside the own one that it is tested against; p are two-sided."""

    own: str  # what stands beside the own row
    difference: float | None = None  # imported - own mean, as a fraction; none without an own mean
    p: float | None = None  # none where nothing could be tested
    corrected: float | None = None  # by Holm's method over the imported numbers of the table
    why: str = ""  # why nothing could be tested

    @property
    def word(self) -> Word:
        """What is said of it."""
        if self.corrected is None or self.difference is None:
            return "untested"
        if self.corrected >= LEVEL:
            return "not told apart"
        return "higher" if self.difference > 0 else "lower"

    @property
    def sign(self) -> str:
        """The mark behind the number."""
        return {"higher": IMPORTED_HIGHER, "lower": IMPORTED_LOWER}.get(self.word, "")

    @property
    def said(self) -> str:
        """In a sentence, without its end."""
        if self.corrected is None:
            return f"untested against {self.own}: {self.why}"
        word = self.word if self.word == "not told apart" else f"significantly {self.word}"
        beside = "from" if self.word == "not told apart" else "than"
        return f"{word} {beside} {self.own} (Welch's t-test, p = {self.corrected:.2g} corrected)"


def tested(imported: Statistic, own: Statistic | None, name: str) -> ImportedComparison:
    """An imported number beside an own one; of `imported`, n is 0 where it is not known. Not corrected yet.

    Welch's t-test (Biometrika 34, 1947) from means, sample deviations and numbers of runs, since the runs themselves
    are not known: unpaired, and for numbers of runs that were fixed beforehand.
    """
    difference = None if own is None else imported.mean - own.mean
    if why := _untestable(imported, own):
        return ImportedComparison(name, difference, why=why)
    assert own is not None
    return ImportedComparison(name, difference, aggregate.welch(imported, own))


def _untestable(imported: Statistic, own: Statistic | None) -> str:
    if imported.n == 1:
        return "a single imported run"
    if imported.std is None or not imported.n:
        missing = [word for word, there in (("n", imported.n), ("std", imported.std is not None)) if not there]
        return f"the import gives no {' and no '.join(missing)}"
    if own is None:
        return "no finished own number"
    if own.std is None:
        return "a single own run"
    return "no variation between runs" if max(imported.std, own.std) <= _NOISE else ""


Tested = TypeVar("Tested", Comparison, ImportedComparison)


def holm(found: Mapping[Place, Tested]) -> dict[Place, Tested]:
    """The comparisons of a table with their p corrected by Holm's step-down method over all that were tested."""
    corrected = aggregate.holm(one.p for one in found.values())
    return {place: replace(one, corrected=p) for (place, one), p in zip(found.items(), corrected, strict=True)}


MIN_PAIRS: Final = 3
"""Pairs before which nothing is tested: with two, a t has one degree of freedom and no power."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A spending function of Lan & DeMets (Biometrika 70, 1983, 659-663) that never ends: of pairs, not of a maximum.

    In the place of their information fraction stands 1 - (first + 1) / (n + 1), which is 0 at the first look and 1
    only with infinitely many pairs, so that any number of seeds may be added.
    """

    first: int  # pairs at the first look
    share: float  # of the level, which is spent there

    def spent(self, pairs: int) -> float:
        """The share of the level that may be spent once there are so many pairs; 0 before the first look."""
        if pairs < self.first:
            return 0.0
        return 1.0 - (1.0 - self.share) * (self.first + 1) / (pairs + 1)


ANY: Final = Spending(MIN_PAIRS, 0.25)
"""For looks at any time: a quarter at 3 pairs, half at 5, three quarters at 11."""


def planned(pairs: int, least: int = MIN_PAIRS) -> Spending:
    """For a plan that is looked at when it has ended: four fifths there, the rest for seeds that are added later.

    `least` pairs are looked at first: of queries alone one seed tells enough.
    """
    return Spending(max(least, pairs), 0.8)


EXACT: Final = 48
"""Pairs up to which the joint distribution is followed; beyond, what is newly spent is a test of its own."""

_CELLS: Final = 241  # of the angle between the two boundaries
_NODES: Final = 4097  # of the tabulated distribution of a step


class Boundary:
    """The critical values of |t| of a paired t-test that is repeated after every pair from the first look on.

    Lan & DeMets (Biometrika 70, 1983, 659-663): c(n) is such that P(|t(k)| < c(k) for all k < n, |t(n)| >= c(n)) is
    what is newly spent at n. Normal theory spends too much on few pairs, so that it is computed from the exact joint
    distribution of the t (Jennison & Turnbull, Biometrika 78, 1991, 133-141; Rom & McTague, J Biopharm Stat 30, 2020,
    752-764), here by a recursion in one number. Under the null the direction of (d(1)..d(n)) is uniform on a sphere,
    whatever the variance. With sin a(n) = sum(d) / sqrt(n sum(d^2)) it is t(n) = sqrt(n - 1) tan a(n), and

        sqrt(n + 1) sin a(n + 1) = sqrt(n) sin a(n) cos f + sin f,      sqrt(n) tan f ~ t with n degrees of freedom

    where tan f = d(n + 1) / sqrt(sum(d(1..n)^2)) does not depend on a(1..n), as length and direction are independent.
    Fewer looks than one after every pair, whenever and for whatever reason, cross less often.
    """

    def __init__(self, level: float, spending: Spending) -> None:
        self._level, self._spending = level, spending
        self._critical: list[float] = []
        self._state: tuple[Any, Any] | None = None  # angles and their masses inside the boundary
        self._lock = Lock()

    def at(self, pairs: int) -> float:
        """The |t| from which on a difference counts; infinite before the first look."""
        first = self._spending.first
        if pairs < first:
            return inf
        if pairs > EXACT:
            return _quantile(pairs, self.new(pairs))
        with self._lock:
            while len(self._critical) <= pairs - first:
                self._advance(first + len(self._critical))
            return self._critical[pairs - first]

    def new(self, pairs: int) -> float:
        """What of the level is newly spent at so many pairs."""
        return self._level * (self._spending.spent(pairs) - self._spending.spent(pairs - 1))

    def _advance(self, pairs: int) -> None:
        import numpy as np
        from scipy.optimize import brentq
        from scipy.special import stdtr

        if self._state is None:
            critical = _quantile(pairs, self.new(pairs))
            edges = np.linspace(-1, 1, _CELLS + 1) * np.arctan(critical / (pairs - 1) ** 0.5)
            below = stdtr(pairs - 1, (pairs - 1) ** 0.5 * np.tan(edges))
        else:
            angles, masses = self._state
            step = _Step(pairs - 1, angles)
            # By symmetry twice the upper tail.
            crossed = lambda edge: 2 * float(masses @ (1 - step.below(np.array([edge]))[:, 0])) - self.new(pairs)  # noqa: E731
            edge = brentq(crossed, 0.0, pi / 2 - 1e-9, xtol=1e-10)
            critical = (pairs - 1) ** 0.5 * float(np.tan(edge))
            edges = np.linspace(-edge, edge, _CELLS + 1)
            below = masses @ step.below(edges)
        self._critical.append(critical)
        self._state = ((edges[1:] + edges[:-1]) / 2, np.diff(below))


class _Step:
    """How the angle moves with one more pair, from each of some angles."""

    def __init__(self, pairs: int, angles: Any) -> None:
        import numpy as np
        from scipy.special import stdtr

        self._pairs = pairs
        along = pairs**0.5 * np.sin(angles)
        self._radius, self._turn = np.hypot(1, along)[:, None], np.arctan(along)[:, None]
        self._nodes = np.linspace(-pi / 2, pi / 2, _NODES)
        with np.errstate(over="ignore"):
            self._table = stdtr(pairs, pairs**0.5 * np.tan(self._nodes))
        self._table[0], self._table[-1] = 0.0, 1.0

    def below(self, angles: Any) -> Any:
        """P(next angle <= each of `angles`), a row for each angle before."""
        import numpy as np

        # radius * sin(f + turn) <= height: f + turn is left of the arc above it, or right of it.
        height = (self._pairs + 1) ** 0.5 * np.sin(angles)[None, :] / self._radius
        rise = np.arcsin(np.clip(height, -1, 1))
        share = self._share(rise - self._turn) - self._share(-pi - rise - self._turn)
        share = share + 1 - self._share(pi - rise - self._turn)
        return np.where(height >= 1, 1.0, np.where(height <= -1, 0.0, share))

    def _share(self, angle: Any) -> Any:
        import numpy as np

        return np.interp(angle, self._nodes, self._table)


@lru_cache(maxsize=1024)
def boundary(level: float, spending: Spending) -> Boundary:
    """The boundary of one comparison at a level that is already shared with the others of its table."""
    return Boundary(level, spending)


def _quantile(pairs: int, share: float) -> float:
    from scipy.special import stdtrit

    return float(-stdtrit(pairs - 1, share / 2))


SURE: Final = 0.8
"""How surely the pairs that are asked for decide: four times of five."""

_NORMAL: Final = NormalDist()
_POWER: Final = _NORMAL.inv_cdf(SURE)


@dataclass(frozen=True, slots=True)
class Prospect:
    """A comparison as it stands, with the boundaries that it has to cross."""

    mean: float
    std: float
    pairs: int
    differs: Boundary  # for its t against zero
    equals: Boundary  # for that against the margin, on either side
    holds: Boundary  # of the interval that holds for all comparisons at once
    margin: float | None = None
    floor: float = 0.0  # the variance that no pairs take away: that of test queries, where it counts

    def more(self) -> int | None:
        """Pairs until it is decided in four of five cases; none: beyond what is planned for."""
        return next((n - self.pairs for n in range(self.pairs + 1, EXACT + 1) if self._lead(n) >= _POWER), None)

    def chance(self, more: int) -> float:
        """How probably so many more pairs decide it."""
        return _NORMAL.cdf(self._lead(self.pairs + more))

    def narrow(self, half: float) -> int | None:
        """Pairs until its interval is no wider than `half` to either side; none: beyond what is planned for."""
        widths = ((n, self.holds.at(n) * self.error(n)) for n in range(self.pairs + 1, EXACT + 1))
        return next((n - self.pairs for n, width in widths if width <= half), None)

    def error(self, pairs: int) -> float:
        """The standard error of the mean difference after so many pairs."""
        alone = self.std / math.sqrt(pairs)
        return math.hypot(alone, math.sqrt(self.floor)) if self.floor else alone

    def _lead(self, pairs: int) -> float:
        """By how many standard errors it would be beyond the nearer of its boundaries."""
        root = 1 / self.error(pairs) if self.floor else math.sqrt(pairs) / self.std
        lead = abs(self.mean) * root - self.differs.at(pairs)
        if self.margin is None:
            return lead
        return max(lead, (self.margin - abs(self.mean)) * root - self.equals.at(pairs))


SHARE: Final = 0.25
"""Of the level, spent at the first look; the rest follows with each further repeat, and never ends."""
_STILL: Final = 1e-13  # of the variances of two candidates: what is left of it by rounding


@dataclass(frozen=True, slots=True)
class Beaten:
    """That a candidate is out, and by whom."""

    by: int
    difference: float  # mean of what the other one is ahead, above 0
    t: float
    needed: float


def beaten(
    scores: Mapping[int, Sequence[float]], rivals: int, level: float, first: int, *, higher: bool
) -> dict[int, Beaten]:
    """The candidates that another one has beaten; `scores` are by candidate, of the same repeats in the same order.

    Paired t-tests of every two candidates, as irace has them (Birattari, Yuan, Balaprakash & Stuetzle 2010; Lopez-
    Ibanez et al., Oper Res Perspect 3, 2016, 43-58), but on a boundary that holds for looks after every repeat from
    the `first` on, at level / rivals one-sided, where `rivals` are all others that began. So the candidate whose true
    mean is best is ever beaten with probability `level` at most: only `rivals` tests concern it, and each crosses
    with level / rivals at most, whatever was dropped before and whoever looked when (Bonferroni). It assumes normal
    differences. The best mean so far is never beaten.
    """
    import numpy as np

    candidates = list(scores)
    count = len(next(iter(scores.values()), ()))
    if len(candidates) < 2 or count < first or rivals < 1:
        return {}
    runs = np.array([scores[one] for one in candidates]) * (1.0 if higher else -1.0)
    # One side of a boundary of two: whoever is on the other side first has left the race.
    needed = boundary(min(1.0, 2 * level / rivals), Spending(first, SHARE)).at(count)
    means, noise = runs.mean(axis=1), np.cov(runs)
    ahead = means[None, :] - means[:, None]  # by how much the second is ahead of the first
    own = np.diag(noise)[:, None] + np.diag(noise)[None, :]
    variance = own - 2 * noise
    varies = variance > _STILL * own  # a difference that is the same with every seed says nothing of chance
    t = np.where(varies, ahead * math.sqrt(count) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
    best = t.argmax(axis=1)
    return {
        one: Beaten(candidates[best[at]], float(ahead[at, best[at]]), float(t[at, best[at]]), needed)
        for at, one in enumerate(candidates)
        if t[at, best[at]] >= needed
    }
