"""Paired tests of a cell against its baseline, corrected for the number of tests and of looks."""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, pi
from statistics import NormalDist
from threading import Lock
from typing import Any, Final, Literal, TypeVar

from orchestrator.publish import aggregate
from orchestrator.views.runs import Statistic
from workers.catalog import counted

Test = Literal["t", "wilcoxon"]

LEVEL: Final = 0.05
"""The level at which a difference is marked, after the correction."""
MIN_RUNS: Final[Mapping[Test, int]] = {"t": 3, "wilcoxon": 6}
"""The pairs that a test needs; with fewer, no two-sided Wilcoxon test reaches the level."""
HIGHER, LOWER = "↑", "↓"

_NAMES: Final[Mapping[Test, str]] = {"t": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test"}
_MOST_TIED: Final = 50  # differences; with more, scipy uses the normal distribution anyway
_NOISE: Final = 1e-12  # rounding errors of shares

Place = TypeVar("Place", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A metric of a cell compared with that of its baseline, run by run."""

    baseline: int  # the index of that cell
    n: int  # pairs: runs of both that have the same repeat labels
    difference: float | None  # the mean of own - baseline over the pairs, as a fraction; `None` without a pair
    p: float | None = None  # two-sided; `None` if nothing could be tested
    corrected: float | None = None  # by Holm's method within the table

    @property
    def sign(self) -> str:
        """The mark that a table prints for a significant difference, by its direction; "" otherwise."""
        if self.corrected is None or self.corrected >= LEVEL or not self.difference:
            return ""
        return HIGHER if self.difference > 0 else LOWER


def compare(own: Mapping[Place, float], base: Mapping[Place, float], baseline: int, test: Test) -> Comparison:
    """Tests the runs of a cell against the runs of its baseline with equal keys; p is not corrected yet."""
    pairs = [(value, base[place]) for place, value in own.items() if place in base]
    if not pairs:
        return Comparison(baseline, 0, None)
    differences = [mine - theirs for mine, theirs in pairs]
    mean = math.fsum(differences) / len(pairs)
    size = max(abs(value) for pair in pairs for value in pair)
    tests = {"t": paired_t, "wilcoxon": wilcoxon}
    p = tests[test](differences, size * _NOISE) if len(pairs) >= MIN_RUNS[test] else None
    return Comparison(baseline, len(pairs), mean, p)


def paired_t(differences: Sequence[float], noise: float = 0.0) -> float | None:
    """The two-sided p-value of a paired t-test; `None` if the differences vary by no more than `noise`."""
    found = aggregate.statistic(differences)
    if found.std is None or found.std <= noise:
        return None
    return two_sided(found.mean / (found.std / math.sqrt(found.n)), found.n - 1)


def two_sided(t: float, freedom: float) -> float:
    """The two-sided p-value of a Student-t value with these degrees of freedom."""
    from scipy.special import stdtr  # a slow import, and most tables test nothing

    return float(2 * stdtr(freedom, -abs(t)))


def critical_t(p: float, freedom: float) -> float:
    """The absolute Student-t value with this two-sided p-value and these degrees of freedom."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, p / 2))


def wilcoxon(differences: Sequence[float], noise: float = 0.0) -> float | None:
    """The two-sided p-value of Wilcoxon's signed-rank test without zeros; `None` if no difference exceeds `noise`."""
    # Rounded, so that equal differences share a rank despite rounding errors.
    moved = [round(difference, 12) for difference in differences if abs(difference) > noise and round(difference, 12)]
    if not moved:
        return None
    if len({abs(difference) for difference in moved}) < len(moved) <= _MOST_TIED:
        return _tied(moved)
    from scipy.stats import wilcoxon as signed_ranks  # a slow import

    return float(signed_ranks(moved).pvalue)


def _tied(moved: Sequence[float]) -> float:
    """The exact p if differences have equal sizes, for which scipy's permutation test is slow."""
    sizes = sorted(abs(difference) for difference in moved)
    # Twice the mean rank of equal sizes, a whole number.
    rank = {size: 2 * sizes.index(size) + sizes.count(size) + 1 for size in set(sizes)}
    ways = {0: 1}  # the number of choices of signs by the sum of the positive ranks
    for size in sizes:
        ways = {
            total: ways.get(total, 0) + ways.get(total - rank[size], 0)
            for total in {*ways, *(sum_ + rank[size] for sum_ in ways)}
        }
    above = sum(rank[abs(difference)] for difference in moved if difference > 0)
    least = min(above, sum(rank[size] for size in sizes) - above)
    return min(1.0, 2 * sum(times for total, times in ways.items() if total <= least) / 2.0 ** len(sizes))


def words(found: Collection[Comparison], test: Test, baseline: str, noun: str = "seed") -> str:
    """Caption sentences on the tests of a table's cells against `baseline`, or on why nothing was tested.

    `noun` names what the runs of a pair share.
    """
    if not found:
        return f"Nothing is compared with {baseline}: there are no finished runs of both."
    tested = [comparison for comparison in found if comparison.p is not None]
    few = sum(comparison.n < MIN_RUNS[test] for comparison in found)
    if not tested:
        if few:
            most = max(comparison.n for comparison in found)
            reason = f"the {_NAMES[test]} needs {MIN_RUNS[test]} {noun}s that both have, there are {most}"
        else:
            reason = "the differences do not vary between runs"
        return f"No difference from {baseline} could be tested: {reason}."
    sizes = sorted({comparison.n for comparison in tested})
    span = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    sentences = [
        f"Compared with {baseline} run by run: two-sided {_NAMES[test]} on {span} pairs with the same {noun}, "
        f"p < {LEVEL} after Holm's correction for {counted(len(tested), 'comparison')}."
    ]
    if test == "wilcoxon" and 2.0 ** (1 - sizes[-1]) * len(tested) >= LEVEL:
        sentences.append("No mark is possible: with so few pairs no corrected p falls below the level.")
    if left := len(found) - len(tested):
        reasons = [f"{few} with fewer than {MIN_RUNS[test]} pairs"] if few else []
        reasons += [f"{left - few} without variation"] if left > few else []
        sentences.append(f"Not tested: {' and '.join(reasons)}.")
    return " ".join(sentences)


def meanings(found: Collection[Comparison], test: Test, baseline: str) -> list[tuple[str, str]]:
    """The significance marks that occur in a table, with their meanings."""
    number = counted(sum(comparison.p is not None for comparison in found), "comparison")
    how = f"than {baseline} at the level {LEVEL} ({_NAMES[test]}, two-sided, Holm-corrected for {number})"
    occurring = {comparison.sign for comparison in found}
    both = ((HIGHER, "higher"), (LOWER, "lower"))
    return [(sign, f"significantly {word} {how}") for sign, word in both if sign in occurring]


IMPORTED_HIGHER: Final = "⇑"
IMPORTED_LOWER: Final = "⇓"


@dataclass(frozen=True, slots=True)
class ImportedComparison:
    """An imported number compared with an own number; p-values are two-sided."""

    own: str  # the name of the own row
    difference: float | None = None  # imported - own mean, as a fraction; `None` without an own mean
    p: float | None = None  # `None` if nothing could be tested
    corrected: float | None = None  # by Holm's method over the imported numbers of the table
    why: str = ""  # why nothing could be tested

    @property
    def word(self) -> Literal["higher", "lower", "not told apart", "untested"]:
        """The result of the comparison in a word."""
        if self.corrected is None or self.difference is None:
            return "untested"
        if self.corrected >= LEVEL:
            return "not told apart"
        return "higher" if self.difference > 0 else "lower"

    @property
    def sign(self) -> str:
        """The mark behind the imported number."""
        return {"higher": IMPORTED_HIGHER, "lower": IMPORTED_LOWER}.get(self.word, "")

    @property
    def summary(self) -> str:
        """The result of the comparison as a sentence without a full stop."""
        if self.corrected is None:
            return f"untested against {self.own}: {self.why}"
        result = f"{self.word} from" if self.word == "not told apart" else f"significantly {self.word} than"
        return f"{result} {self.own} (Welch's t-test, p = {self.corrected:.2g} corrected)"


def tested(imported: Statistic, own: Statistic | None, name: str) -> ImportedComparison:
    """Tests an imported number against an own number; n of `imported` is 0 if unknown. p is not corrected yet.

    Welch's t-test (Biometrika 34, 1947) from means, sample deviations and numbers of runs, since the imported runs are
    not known: unpaired, and for numbers of runs that were fixed beforehand.
    """
    difference = None if own is None else imported.mean - own.mean
    if imported.n == 1:
        why = "a single imported run"
    elif imported.std is None or not imported.n:
        missing = [word for word, there in (("n", imported.n), ("std", imported.std is not None)) if not there]
        why = f"the import gives no {' and no '.join(missing)}"
    elif own is None:
        why = "no finished own number"
    elif own.std is None:
        why = "a single own run"
    elif max(imported.std, own.std) <= _NOISE:
        why = "no variation between runs"
    else:
        return ImportedComparison(name, difference, aggregate.welch(imported, own))
    return ImportedComparison(name, difference, why=why)


Tested = TypeVar("Tested", Comparison, ImportedComparison)


def holm(found: Mapping[Place, Tested]) -> dict[Place, Tested]:
    """Corrects the p-values of a table's comparisons by Holm's step-down method over all tested comparisons."""
    corrected = aggregate.holm(comparison.p for comparison in found.values())
    return {place: replace(one, corrected=p) for (place, one), p in zip(found.items(), corrected, strict=True)}


MIN_PAIRS: Final = 3
"""The pairs from which on anything is tested; with two, a t has one degree of freedom and no power."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A spending function of Lan & DeMets (Biometrika 70, 1983, 659-663) without a maximal number of pairs.

    The information fraction is replaced by 1 - (first + 1) / (n + 1), which is 0 at the first look and 1 only with
    infinitely many pairs, so that any number of seeds may be added.
    """

    first: int  # pairs at the first look
    share: float  # of the level, which is spent there

    def spent(self, pairs: int) -> float:
        """The share of the level that may be spent after so many pairs of runs; 0 before the first look."""
        if pairs < self.first:
            return 0.0
        return 1.0 - (1.0 - self.share) * (self.first + 1) / (pairs + 1)


ANY: Final = Spending(MIN_PAIRS, 0.25)
"""For looks at any time: a quarter at 3 pairs, half at 5, three quarters at 11."""


def planned(pairs: int, least: int = MIN_PAIRS) -> Spending:
    """The spending of a plan whose results are seen at its end: four fifths there, the rest for seeds added later.

    `least` is the least number of pairs of the first look; 1 is enough if only queries count.
    """
    return Spending(max(least, pairs), 0.8)


EXACT: Final = 48
"""Pairs up to which the joint distribution is computed; beyond, what is newly spent is a test of its own."""

_CELLS: Final = 241  # of the angle between the two boundaries
_NODES: Final = 4097  # of the tabulated distribution of a step


class Boundary:
    """The critical values of |t| for a paired t-test that is repeated after every pair from the first look on.

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
        """The absolute t from which on a difference of so many pairs is significant; infinite before the first look."""
        first = self._spending.first
        if pairs < first:
            return inf
        if pairs > EXACT:
            return critical_t(self.new(pairs), pairs - 1)
        with self._lock:
            while len(self._critical) <= pairs - first:
                self._advance(first + len(self._critical))
            return self._critical[pairs - first]

    def new(self, pairs: int) -> float:
        """The part of the level that is newly spent at so many pairs of runs."""
        return self._level * (self._spending.spent(pairs) - self._spending.spent(pairs - 1))

    def _advance(self, pairs: int) -> None:
        import numpy as np
        from scipy.optimize import brentq
        from scipy.special import stdtr

        if self._state is None:
            critical = critical_t(self.new(pairs), pairs - 1)
            edges = np.linspace(-1, 1, _CELLS + 1) * np.arctan(critical / (pairs - 1) ** 0.5)
            below = stdtr(pairs - 1, (pairs - 1) ** 0.5 * np.tan(edges))
        else:
            angles, masses = self._state
            next_below = _next_angle(pairs - 1, angles)
            # By symmetry twice the upper tail.
            crossed = lambda edge: 2 * float(masses @ (1 - next_below(np.array([edge]))[:, 0])) - self.new(pairs)  # noqa: E731
            edge = brentq(crossed, 0.0, pi / 2 - 1e-9, xtol=1e-10)
            critical = (pairs - 1) ** 0.5 * float(np.tan(edge))
            edges = np.linspace(-edge, edge, _CELLS + 1)
            below = masses @ next_below(edges)
        self._critical.append(critical)
        self._state = ((edges[1:] + edges[:-1]) / 2, np.diff(below))


def _next_angle(pairs: int, before: Any) -> Callable[[Any], Any]:
    """The distribution of the angle after one more pair, from each of the angles `before` after `pairs`.

    The function maps angles [m] to P(next angle <= angle), [len(before), m].
    """
    import numpy as np
    from scipy.special import stdtr

    along = pairs**0.5 * np.sin(before)
    radius, turn = np.hypot(1, along)[:, None], np.arctan(along)[:, None]
    nodes = np.linspace(-pi / 2, pi / 2, _NODES)
    with np.errstate(over="ignore"):
        table = stdtr(pairs, pairs**0.5 * np.tan(nodes))
    table[0], table[-1] = 0.0, 1.0

    def below(angles: Any) -> Any:
        # radius * sin(f + turn) <= height: f + turn is left of the arc above it, or right of it.
        height = (pairs + 1) ** 0.5 * np.sin(angles)[None, :] / radius
        rise = np.arcsin(np.clip(height, -1, 1))
        share = np.interp(rise - turn, nodes, table) - np.interp(-pi - rise - turn, nodes, table)
        share = share + 1 - np.interp(pi - rise - turn, nodes, table)
        return np.where(height >= 1, 1.0, np.where(height <= -1, 0.0, share))

    return below


@lru_cache(maxsize=1024)
def boundary(level: float, spending: Spending) -> Boundary:
    """The group-sequential boundary of one comparison; `level` is its share of the table's level."""
    return Boundary(level, spending)


_NORMAL: Final = NormalDist()
_POWER: Final = _NORMAL.inv_cdf(0.8)
"""The requested pairs decide a comparison with probability 0.8."""


@dataclass(frozen=True, slots=True)
class SeedsNeeded:
    """Estimates how many further pairs of runs decide a comparison, from its results so far and its boundaries."""

    mean: float
    std: float
    pairs: int
    differs: Boundary  # for its t against zero
    equals: Boundary  # for its t against the margin, on either side
    holds: Boundary  # of the interval that holds for all comparisons at once
    margin: float | None = None
    floor: float = 0.0  # the variance that more pairs do not reduce: that of test queries, if they count

    def more(self) -> int | None:
        """The further pairs that decide the comparison with probability 0.8; `None` if there must be over `EXACT`."""
        return next((n - self.pairs for n in range(self.pairs + 1, EXACT + 1) if self._lead(n) >= _POWER), None)

    def chance(self, more: int) -> float:
        """The probability that `more` further pairs decide the comparison."""
        return _NORMAL.cdf(self._lead(self.pairs + more))

    def narrow(self, half: float) -> int | None:
        """The further pairs until the difference's interval is at most `half` to either side; `None` as for `more`."""
        widths = ((n, self.holds.at(n) * self.error(n)) for n in range(self.pairs + 1, EXACT + 1))
        return next((n - self.pairs for n, width in widths if width <= half), None)

    def error(self, pairs: int) -> float:
        """The standard error of the mean difference after so many pairs."""
        return math.hypot(self.std / math.sqrt(pairs), math.sqrt(self.floor))

    def _lead(self, pairs: int) -> float:
        """The standard errors by which it would lie beyond the nearer of its boundaries."""
        error = self.error(pairs)
        lead = abs(self.mean) / error - self.differs.at(pairs)
        if self.margin is None:
            return lead
        return max(lead, (self.margin - abs(self.mean)) / error - self.equals.at(pairs))


SHARE: Final = 0.25
"""The share of the level that is spent at the first look; every further repeat spends a part of the rest."""
_STILL: Final = 1e-13  # of the variances of two candidates: rounding errors


@dataclass(frozen=True, slots=True)
class Beaten:
    """The test by which racing eliminated a candidate."""

    by: int  # the better candidate
    difference: float  # its mean lead, above 0
    t: float
    needed: float


def beaten(
    scores: Mapping[int, Sequence[float]], rivals: int, level: float, first: int, *, higher: bool
) -> dict[int, Beaten]:
    """The candidates that racing eliminates, since another beats them; `scores` are by candidate over equal repeats.

    Paired t-tests of every two candidates, as in irace (Birattari, Yuan, Balaprakash & Stuetzle 2010; Lopez-Ibanez et
    al., Oper Res Perspect 3, 2016, 43-58), but on a boundary that holds for looks after every repeat from the `first`
    on, at level / rivals one-sided, where `rivals` are all other candidates that began. So the candidate with the best
    true mean is ever eliminated with probability `level` at most: only `rivals` tests concern it, and each crosses with
    probability level / rivals at most, whenever results are seen and whatever was eliminated before (Bonferroni).
    It assumes normal differences. The candidate with the best mean so far is never eliminated.
    """
    import numpy as np

    candidates = list(scores)
    count = len(next(iter(scores.values()), ()))
    if len(candidates) < 2 or count < first or rivals < 1:
        return {}
    runs = np.array([scores[candidate] for candidate in candidates]) * (1.0 if higher else -1.0)
    # One side of a two-sided boundary: crossing the other side eliminates the other candidate.
    needed = boundary(min(1.0, 2 * level / rivals), Spending(first, SHARE)).at(count)
    means, noise = runs.mean(axis=1), np.cov(runs)
    ahead = means[None, :] - means[:, None]  # the lead of the second over the first
    own = np.diag(noise)[:, None] + np.diag(noise)[None, :]
    variance = own - 2 * noise
    varies = variance > _STILL * own  # an equal difference with every seed cannot be tested
    t = np.where(varies, ahead * math.sqrt(count) / np.sqrt(np.where(varies, variance, 1.0)), -np.inf)
    best = t.argmax(axis=1)
    return {
        candidate: Beaten(candidates[best[at]], float(ahead[at, best[at]]), float(t[at, best[at]]), needed)
        for at, candidate in enumerate(candidates)
        if t[at, best[at]] >= needed
    }
