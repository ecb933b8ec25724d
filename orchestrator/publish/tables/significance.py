"""Whether a cell differs from its baseline: paired tests run by run, corrected for how many a table holds."""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from orchestrator.publish import statistics
from orchestrator.views.runs import Statistic

Test = Literal["t", "wilcoxon"]

LEVEL: Final = 0.05
"""The level at which a difference is marked, after the correction."""
LEAST_RUNS: Final[Mapping[Test, int]] = {"t": 3, "wilcoxon": 6}
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
    p = _p(differences, size * _NOISE, test) if len(pairs) >= LEAST_RUNS[test] else None
    return Comparison(baseline, len(pairs), mean, p)


def paired_t(differences: Sequence[float], noise: float = 0.0) -> float | None:
    """The two-sided p of a paired t-test; none where the differences do not vary by more than `noise`."""
    found = statistics.statistic(differences)
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
    few = sum(one.n < LEAST_RUNS[test] for one in found)
    if not tested:
        if few:
            most = max(one.n for one in found)
            reason = f"the {_NAMES[test]} needs {LEAST_RUNS[test]} {noun}s that both have, there are {most}"
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
        reasons = [f"{few} with fewer than {LEAST_RUNS[test]} pairs"] if few else []
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
    return ImportedComparison(name, difference, statistics.welch(imported, own))


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
    corrected = statistics.holm(one.p for one in found.values())
    return {place: replace(one, corrected=p) for (place, one), p in zip(found.items(), corrected, strict=True)}
