"""Where a generator's samples lie over its training: a panel a look, a column a training, over the mixture itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, FigurePoint, PanelGrid, Plot, Sketch

BINS: Final = 48
"""Squares of a panel along each of its sides."""
LEVELS: Final = 12
"""Shades of a panel, from nothing to its densest square."""
MIXTURE: Final = "mixture"
"""The heading of the row that shows what the generator is to learn."""

_SIDE: Final = 62  # of a panel, in points
_BEYOND: Final = 1.5  # a panel reaches so many times as far from the origin as the outermost Gaussian
_KERNEL: Final = np.exp(-(np.arange(-3, 4) ** 2) / 2)  # a Gaussian of one square


@dataclass(frozen=True, slots=True)
class _Looks:
    """What the samples of one training are at each look, and what they shall be."""

    steps: NDArray[np.float64]
    xy: NDArray[np.float64]  # [w, n, 2]
    target: NDArray[np.float64]  # [m, 2]
    reach: float


def draw(it: Sketch) -> FigureDrawing:
    """One plot of all panels, of one repeat of each training."""
    pooled = sketch.read(it, _looks, first=True)
    shown = [(point, looks) for point, (looks,) in pooled.found]
    reach = max((looks.reach for _, looks in shown), default=1.0)
    steps = sorted({int(step) for _, looks in shown for step in looks.steps})
    data = [datum for point, looks in shown for datum in _data(it, point, looks, reach)]
    columns = list(dict.fromkeys(_heading(it, point) for point in it.points))
    rows = [*(_row(step) for step in steps), MIXTURE]
    plot = Plot("samples", _chart(reach), data, square=True, panels=PanelGrid(columns, rows, _SIDE))
    said = (
        "Where the samples of a generator lie, by the iterations that are done, over the mixture that it is to learn; "
        f"each panel is shaded up to its own densest place. {drawing.first_repeat(it).capitalize()}."
    )
    return FigureDrawing([plot], said=said, notes=[*pooled.notes, *_outside(it, shown, reach)])


def _looks(arrays: Arrays) -> _Looks:
    steps, target, centres = sketch.vector(arrays, "step"), _plane(arrays, "target"), _plane(arrays, "centres")
    xy = np.asarray(arrays["xy"], dtype=np.float64)
    if xy.ndim != 3 or xy.shape[0] != len(steps) or xy.shape[2] != 2 or not xy.size or not bool(np.isfinite(xy).all()):
        raise ValueError(f"xy has the shape {[*xy.shape]}, or holds what is no number")
    return _Looks(steps, xy, target, _BEYOND * float(np.abs(centres).max()) or 1.0)


def _plane(arrays: Arrays, name: str) -> NDArray[np.float64]:
    found = np.asarray(arrays[name], dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != 2 or not found.size or not bool(np.isfinite(found).all()):
        raise ValueError(f"{name} has the shape {[*found.shape]}, or holds what is no number")
    return found


def _heading(it: Sketch, point: FigurePoint) -> str:
    return " / ".join(it.headed(axis)[point.labels.get(axis, "")] for axis in it.layout.facets) or it.outcomes.name


def _row(step: int) -> str:
    return f"step {step:,}"


def _data(it: Sketch, point: FigurePoint, looks: _Looks, reach: float) -> Iterator[Datum]:
    rows = [(_row(int(step)), xy) for step, xy in zip(looks.steps, looks.xy, strict=True)]
    for row, xy in (*rows, (MIXTURE, looks.target)):
        for place in strips(levels(xy, reach), reach):
            yield Datum(point.labels, {"column": _heading(it, point), "row": row, **place})


def levels(xy: NDArray[np.float64], reach: float) -> NDArray[np.int64]:
    """The density of points [n, 2] in shades [BINS, BINS], first x, then y, from 0 to LEVELS where it is greatest."""
    edges = np.linspace(-reach, reach, BINS + 1)
    counts = np.histogram2d(xy[:, 0], xy[:, 1], bins=(edges, edges))[0]
    for axis in (0, 1):
        counts = np.apply_along_axis(np.convolve, axis, counts, _KERNEL, mode="same")
    most = counts.max()
    return np.zeros(counts.shape, dtype=np.int64) if most == 0 else np.rint(LEVELS * counts / most).astype(np.int64)


def strips(shades: NDArray[np.int64], reach: float) -> Iterator[dict[str, float]]:
    """Squares of one shade that touch along x, as one: from `x` to `x2` and `y` to `y2`; none without shade."""
    edges = np.linspace(-reach, reach, len(shades) + 1).round(4).tolist()
    for up, line in enumerate(shades.T):
        ends = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
        for start, end in pairwise(ends):
            if line[start]:
                yield {
                    "x": edges[start], "x2": edges[end], "y": edges[up], "y2": edges[up + 1],
                    "level": int(line[start]),
                }  # fmt: skip


def _chart(reach: float) -> Any:
    scale = alt.Scale(domain=[-reach, reach], nice=False, zero=False)
    x, y = (
        channel(f"{field}:Q", title=None, axis=None, scale=scale) for channel, field in ((alt.X, "x"), (alt.Y, "y"))
    )
    shade = alt.Color("level:Q", scale=alt.Scale(scheme="greens", domain=[0, LEVELS]), legend=None)
    drawn = alt.Chart().transform_filter("isValid(datum.x)").mark_rect().encode(x=x, x2="x2", y=y, y2="y2", color=shade)
    # The frame of a panel, from one datum alone, so that one in which nothing lies has it, too.
    corners = {"x": -reach, "x2": reach, "y": -reach, "y2": reach}
    frame = alt.Chart().transform_aggregate(n="count()", groupby=["column", "row"])
    frame = frame.transform_calculate(**{name: str(value) for name, value in corners.items()})
    frame = frame.mark_rect(filled=False, stroke=style.PALE, strokeWidth=0.6).encode(x=x, x2="x2", y=y, y2="y2")
    return alt.layer(frame, drawn)


def _outside(it: Sketch, found: list[tuple[FigurePoint, _Looks]], reach: float) -> list[str]:
    """Which trainings have samples beyond their panels."""
    shares = [(point, float((np.abs(looks.xy) > reach).any(axis=2).mean())) for point, looks in found]
    beyond = [f"{drawing.of_point(it, point)} ({share:.0%})" for point, share in shares if share >= 0.005]
    return [f"Samples beyond the panels: {drawing.some(beyond)}."] if beyond else []
