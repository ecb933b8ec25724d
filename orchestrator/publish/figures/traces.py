"""Curves of runs made fit to be drawn together: smoothed, averaged over runs, and thinned with their extremes kept."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Points = Sequence[tuple[float, float | None]]
"""(x, value) in the order of x; none where the value is not a number."""
Band = list[tuple[float, float, float]]
MOST_GRID: Final = 2_000
"""Places at which runs are averaged."""


def smoothed(points: Points, weight: float) -> list[tuple[float, float | None]]:
    """The exponential moving average with this weight of what was, from 0 (as it is) to below 1, and debiased.

    Debiased: divided by the weights that were given so far, so that the first values do not lean towards zero. A value
    that is not a number stays one and moves nothing.
    """
    if not weight:
        return list(points)
    average = given = 0.0
    averages: list[tuple[float, float | None]] = []
    for x, value in points:
        if value is None or not math.isfinite(value):
            averages.append((x, None))
            continue
        average = weight * average + (1 - weight) * value
        given = weight * given + (1 - weight)
        averages.append((x, average / given))
    return averages


def averaged(runs: Sequence[Points]) -> tuple[list[tuple[float, float | None]], Band]:
    """The mean over runs and the band of one sample deviation, at each x over those runs that have come so far.

    Between two points of a run it is on the line between them: runs do not report at the same moments.
    """
    known = [_finite(points) for points in runs]
    known = [(xs, ys) for xs, ys in known if len(xs)]
    if not known:
        return [], []
    if len(runs) == 1:
        return list(runs[0]), []
    grid = np.unique(np.concatenate([xs for xs, _ in known]))
    if len(grid) > MOST_GRID:
        grid = grid[np.linspace(0, len(grid) - 1, MOST_GRID).round().astype(int)]
    values = np.array([np.interp(grid, xs, ys, left=np.nan, right=np.nan) for xs, ys in known])
    number = np.isfinite(values).sum(axis=0)
    sums = np.nansum(values, axis=0)
    mean = sums / number
    deviation = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / np.maximum(1, number - 1))
    line: list[tuple[float, float | None]] = [(float(x), float(y)) for x, y in zip(grid, mean, strict=True)]
    low, high, several = mean - deviation, mean + deviation, number > 1
    edges = zip(grid[several], low[several], high[several], strict=True)
    return line, [(float(x), float(below), float(above)) for x, below, above in edges]


def thinned(points: Points, most: int) -> list[tuple[float, float | None]]:
    """At most `most` (4 or more) of the points: the first, the last, and of each stretch between its extremes.

    A gap stays a gap: where a stretch has a value that is not a number, the first of these stands for its greatest.
    """
    if len(points) <= most:
        return list(points)
    kept = {0, len(points) - 1}
    for stretch in np.array_split(np.arange(1, len(points) - 1), max(1, (most - 2) // 2)):
        finite = [at for at in stretch if _is_number(points[at][1])]
        gap = next((at for at in stretch if not _is_number(points[at][1])), None)
        if finite:
            kept.add(int(min(finite, key=lambda at: points[at][1] or 0.0)))
            if gap is None:
                kept.add(int(max(finite, key=lambda at: points[at][1] or 0.0)))
        if gap is not None:
            kept.add(int(gap))
    return [points[at] for at in sorted(kept)]


def thinned_band(band: Band, most: int) -> Band:
    """At most `most` places of a band, evenly spread, with the first and the last."""
    if len(band) <= most:
        return band
    return [band[at] for at in np.linspace(0, len(band) - 1, most).round().astype(int)]


def _finite(points: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [(x, value) for x, value in points if value is not None and math.isfinite(value)]
    return np.array([x for x, _ in pairs], dtype=np.float64), np.array([value for _, value in pairs], dtype=np.float64)


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
