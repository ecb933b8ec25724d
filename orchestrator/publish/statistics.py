"""What is computed from repeats: mean, deviation, standard error, intervals, Welch's test, Holm's correction."""

import math
from collections.abc import Iterable, Sequence

from orchestrator.views.runs import Statistic


def statistic(values: Sequence[float]) -> Statistic:
    """Mean and sample deviation (n - 1) of at least one finite value; for n = 1 there is no deviation."""
    n = len(values)
    if n == 0 or not all(math.isfinite(value) for value in values):
        raise ValueError(f"a statistic needs finite values, got {list(values)}")
    mean = math.fsum(values) / n
    if n == 1:
        return Statistic(mean, None, n)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Statistic(mean, math.sqrt(variance), n)


def standard_error(found: Statistic) -> float | None:
    """The deviation of the mean itself, std / sqrt(n); none for n = 1, or where n is not known (0)."""
    return None if found.std is None or found.n < 2 else found.std / math.sqrt(found.n)


def interval(found: Statistic, level: float = 0.95) -> tuple[float, float] | None:
    """Student-t interval of the mean at `level`, as MLRC reports it; none for n = 1."""
    half = half_interval(found, level)
    return None if half is None else (found.mean - half, found.mean + half)


def half_interval(found: Statistic, level: float = 0.95) -> float | None:
    """Half the width of the Student-t interval of the mean at `level`; none for n = 1."""
    error = standard_error(found)
    if error is None:
        return None
    # The quantile itself, and only now: importing it takes half a second, all of scipy.stats a whole one.
    from scipy.special import stdtrit

    return float(stdtrit(found.n - 1, (1 + level) / 2)) * error


def welch(one: Statistic, other: Statistic) -> float:
    """The two-sided p of Welch's t-test (Biometrika 34, 1947) of two means that both have a deviation."""
    from scipy.stats import ttest_ind_from_stats  # only now: scipy.stats takes a second

    sides = (one.mean, one.std, one.n, other.mean, other.std, other.n)
    return float(ttest_ind_from_stats(*sides, equal_var=False).pvalue)


def holm(found: Iterable[float | None]) -> list[float | None]:
    """Each p corrected by Holm's step-down method over all that there are."""
    kept = list(found)
    tested = sorted((p, at) for at, p in enumerate(kept) if p is not None)
    least = 0.0
    for rank, (p, at) in enumerate(tested):
        least = max(least, min(1.0, p * (len(tested) - rank)))
        kept[at] = least
    return kept
