"""How sure a mean over runs and test queries is, as queries are a sample too: seeds crossed with classes of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

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


def half_width(found: QuerySpread, covers: str, level: float = 0.95) -> float | None:
    """Half the interval of the mean by Student's t that covers `queries` or `both`; none for `both` of one run."""
    return None if covers == "both" and found.runs < 2 else needed(found, covers, 1 - level)


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
