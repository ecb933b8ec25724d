"""A metric of cells over two axes as coloured squares with numbers; cosines of images; or samples of a generator."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import (
    Arrays,
    Datum,
    FigureDrawing,
    FigurePoint,
    PanelGrid,
    Plot,
    Sketch,
    Value,
)
from orchestrator.views.tables import decimals_of, printed

_SHARP: Final = 900  # the width of a picture of cosines in pixels
MOST_BESIDE: Final = 4_000
"""The most images, or class vectors, of a picture of cosines."""
MOST_IMAGES: Final = 100
"""The most images whose cosines are drawn one by one; of more images, the means over classes are drawn."""

BINS: Final = 48
"""Squares along a side of a panel."""
LEVELS: Final = 12
"""Shades of a panel, up to its densest square."""
_MIXTURE: Final = "mixture"
"""The heading of the row that shows the target of the generator."""

_PANEL_SIDE: Final = 62  # of a panel, in points
_BEYOND: Final = 1.5  # a panel reaches 1.5 times as far from the origin as the outermost Gaussian
_KERNEL: Final = np.exp(-(np.arange(-3, 4) ** 2) / 2)  # a Gaussian of one square


def draw(it: Sketch) -> FigureDrawing:
    """Draws a heat map for each metric, or for the cosines or generated samples of a data file."""
    if it.layout.data is not None:
        drawn = {"heat_map_stages": _stages, "samples": _samples}
        return drawn.get(sketch.figure_of(it), _cosines)(it)
    return FigureDrawing(
        [_plot(it, metric) for metric in it.layout.metrics], caption=f"Test metrics, {drawing.averaged(it)}."
    )


def _plot(it: Sketch, metric: str) -> Plot:
    unit = drawing.unit_of(it, metric)
    across, up = it.layout.x or "", it.layout.y or ""
    columns, rows = it.printed(across), it.printed(up)
    shown = list(drawing.statistics(it, metric))
    decimals = it.layout.decimals
    if decimals is None and unit == "number":
        decimals = decimals_of((one.mean for _, one in shown), (one.std for _, one in shown if one.std is not None))
    elif decimals is None:
        decimals = 3 if unit == "fraction" else 1
    data = []
    for point, statistic in shown:
        values = drawing.values(statistic, "std", drawing.factor(unit))
        place = {"x": columns[point.labels.get(across, "")], "y": rows[point.labels.get(up, "")]}
        text = {"text": printed(statistic.mean, unit, decimals)}
        data.append(Datum(point.labels, values | place | text | drawing.provenance(point)))
    title = drawing.title_of(it, metric)
    return Plot(metric, _chart(it, title, data), data, least=(30 * len(columns), 20 * len(rows)))


def _chart(it: Sketch, title: str, data: list[Datum]) -> Any:
    across, up = it.layout.x or "", it.layout.y or ""
    known = [value for datum in data if isinstance(value := datum.values["mean"], float)]
    middle = (min(known) + max(known)) / 2 if known else 0.0
    x, y = style.across(it, across), style.upwards(it, up)
    tooltip = style.tips(
        it, {"x:N": it.names.axis_name(across), "y:N": it.names.axis_name(up), "mean:Q": title, "n:Q": "n"}
    )
    colour = alt.Color("mean:Q", title=title, scale=alt.Scale(scheme="viridis"), legend=_bar())
    base = alt.Chart().transform_filter("isValid(datum.mean)").encode(x=x, y=y)
    light = alt.condition(f"datum.mean > {middle!r}", alt.value(style.INK), alt.value("#ffffff"))
    return alt.layer(
        base.mark_rect().encode(color=colour, tooltip=tooltip),
        base.mark_text(fontSize=7.5).encode(text="text:N", color=light),
    )


def _bar() -> Any:
    return alt.Legend(orient="right", direction="vertical", gradientLength=90, gradientThickness=9, tickCount=4)


def _cosines(it: Sketch) -> FigureDrawing:
    """The cosines between images, or the means between classes of many images; of one repeat."""
    files, missing = sketch.read(it, _matrix, first=True)
    data = [
        Datum(point.labels, {"x": column, "y": row, "mean": float(value) if np.isfinite(value) else None})
        for point, (matrix,) in files
        for (row, column), value in np.ndenumerate(matrix)
    ]
    x, y = (
        channel(f"{field}:O", title=None, axis=None, scale=alt.Scale(paddingInner=0))
        for channel, field in ((alt.X, "x"), (alt.Y, "y"))
    )
    scale = alt.Scale(scheme="blueorange", domain=[-1, 1])
    colour = alt.Color("mean:Q", title="cosine", scale=scale, legend=_bar())
    chart = (
        alt.Chart()
        .transform_filter("isValid(datum.mean)")
        .mark_rect()
        .encode(x=x, y=y, color=colour, tooltip=style.tips(it, {"mean:Q": "cosine"}))
    )
    caption = f"Cosines between {sketch.split_of(it)} images, sorted by class; {drawing.first_repeat(it)}."
    return FigureDrawing([Plot("cosine", alt.layer(chart), data, square=True)], caption=caption, notes=missing)


def _matrix(arrays: Arrays) -> NDArray[np.float64]:
    cosine = np.asarray(arrays["cosine"], dtype=np.float64)
    if len(cosine) > MOST_IMAGES:
        cosine = np.asarray(arrays["class_cosine"], dtype=np.float64)
    if cosine.ndim != 2 or cosine.shape[0] != cosine.shape[1] or len(cosine) > MOST_IMAGES:
        raise ValueError(f"the array `cosine` has the shape {[*cosine.shape]}, expected [n, n], n <= {MOST_IMAGES}")
    return cosine


def _stages(it: Sketch) -> FigureDrawing:
    """The cosines between training images and class vectors as pictures, one plot per stage."""
    files, missing = sketch.read(it, partial(sketch.read_stages, convert=_seen), first=True)
    chart = partial(_pictured, it)
    plots = []
    wanted, absent = sketch.drawn(it, [found for _, (found,) in files])
    for stage in wanted:
        data = [Datum(point.labels, _values(*found[stage])) for point, (found,) in files if stage in found]
        plots.append(Plot(stage.key, chart, data, title=stage.title, square=True))
    shown = "Cosines between training images, across, and what the loss has learned of their classes, upwards"
    caption = f"{shown}; both sorted by class; {drawing.first_repeat(it)}."
    return FigureDrawing(plots, caption=caption, notes=[*missing, *absent])


def _seen(arrays: Arrays, at: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The cosines [m, n] of a stage, and which of them are of an image and its own class [m, n]."""
    cosine = sketch.numbers(arrays["cosine"][at], "cosine", None, None).T
    if max(cosine.shape) > MOST_BESIDE:
        raise ValueError(
            f"the array `cosine` has {max(cosine.shape):,} rows or columns; at most {MOST_BESIDE:,} are drawn"
        )
    label = sketch.vector(arrays, "label", cosine.shape[1])
    classes = sketch.vector(arrays, "proxy_label", cosine.shape[0]) if "proxy_label" in arrays else label
    return cosine, classes[:, None] == label


def _values(cosine: NDArray[np.float64], own_class: NDArray[np.bool_]) -> dict[str, Value]:
    """The mean cosines to the own class and to others, and the picture of all cosines."""
    own, others = cosine[own_class], cosine[~own_class]
    means = {"own": float(own.mean()) if own.size else None, "others": float(others.mean()) if others.size else None}
    return {**means, "picture": style.address(style.png(_coloured(cosine)))}


def _coloured(cosine: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The colours of cosines, the first row at the bottom; each is a square of some pixels, to be sharp in print."""
    known = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in style.DIVERGING])
    at = np.linspace(-1, 1, len(known))
    channels = [np.interp(cosine.clip(-1, 1), at, known[:, channel]) for channel in range(3)]
    pixels = np.stack(channels, axis=-1).round().astype(np.uint8)[::-1]
    sharp = max(1, _SHARP // max(cosine.shape))
    return pixels.repeat(sharp, axis=0).repeat(sharp, axis=1)


def _pictured(it: Sketch, width: int, height: int) -> Any:
    """The picture with a legend of its colours."""
    scale = alt.Scale(domain=np.linspace(-1, 1, len(style.DIVERGING)).tolist(), range=[*style.DIVERGING])
    scale.interpolate = "rgb"
    colour = alt.Color("own:Q", title="cosine", scale=scale, legend=_bar())
    key = alt.Chart().transform_filter("isValid(datum.picture)").mark_point(opacity=0)
    tooltip = style.tips(it, {"own:Q": "mean, own class", "others:Q": "mean, other classes"})
    return style.chart(width, height, aspect=False) + key.encode(color=colour, tooltip=tooltip)


# Samples of a generator during its training: one row of panels per moment, one column per training


@dataclass(frozen=True, slots=True)
class _Looks:
    """The samples of one training at each moment, and its target."""

    steps: NDArray[np.float64]
    xy: NDArray[np.float64]  # [w, n, 2]
    target: NDArray[np.float64]  # [m, 2]
    reach: float


def _samples(it: Sketch) -> FigureDrawing:
    """One plot of all panels, of one repeat of each training."""
    files, missing = sketch.read(it, _looks, first=True)
    shown = [(point, looks) for point, (looks,) in files]
    reach = max((looks.reach for _, looks in shown), default=1.0)
    steps = sorted({int(step) for _, looks in shown for step in looks.steps})
    data = [datum for point, looks in shown for datum in _sample_data(it, point, looks, reach)]
    columns = list(dict.fromkeys(_heading(it, point) for point in it.points))
    rows = [*(f"step {step:,}" for step in steps), _MIXTURE]
    plot = Plot("samples", _sample_chart(reach), data, square=True, panels=PanelGrid(columns, rows, _PANEL_SIDE))
    caption = (
        "Where the samples of a generator lie, by the iterations that are done, over the mixture that it is to learn; "
        f"each panel is shaded up to its own densest place. {drawing.first_repeat(it).capitalize()}."
    )
    return FigureDrawing([plot], caption=caption, notes=[*missing, *_outside(it, shown, reach)])


def _looks(arrays: Arrays) -> _Looks:
    steps = sketch.vector(arrays, "step")
    xy = sketch.numbers(arrays["xy"], "xy", len(steps), None, 2)
    target, centres = (sketch.numbers(arrays[name], name, None, 2) for name in ("target", "centres"))
    return _Looks(steps, xy, target, _BEYOND * float(np.abs(centres).max()) or 1.0)


def _heading(it: Sketch, point: FigurePoint) -> str:
    return " / ".join(it.headed(axis)[point.labels.get(axis, "")] for axis in it.layout.facets) or it.results.name


def _sample_data(it: Sketch, point: FigurePoint, looks: _Looks, reach: float) -> Iterator[Datum]:
    rows = [(f"step {int(step):,}", xy) for step, xy in zip(looks.steps, looks.xy, strict=True)]
    for row, xy in (*rows, (_MIXTURE, looks.target)):
        for place in strips(levels(xy, reach), reach):
            yield Datum(point.labels, {"column": _heading(it, point), "row": row, **place})


def levels(xy: NDArray[np.float64], reach: float) -> NDArray[np.int64]:
    """The density of points [n, 2] over a square grid, as shades [BINS, BINS] from 0 to LEVELS (the maximum)."""
    edges = np.linspace(-reach, reach, BINS + 1)
    counts = np.histogram2d(xy[:, 0], xy[:, 1], bins=(edges, edges))[0]
    for axis in (0, 1):
        counts = np.apply_along_axis(np.convolve, axis, counts, _KERNEL, mode="same")
    most = counts.max()
    return np.zeros(counts.shape, dtype=np.int64) if most == 0 else np.rint(LEVELS * counts / most).astype(np.int64)


def strips(shades: NDArray[np.int64], reach: float) -> Iterator[dict[str, float]]:
    """Joins adjacent squares of equal shade along x, from `x` to `x2` and `y` to `y2`; leaves out empty squares."""
    edges = np.linspace(-reach, reach, len(shades) + 1).round(4).tolist()
    for up, line in enumerate(shades.T):
        ends = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
        for start, end in pairwise(ends):
            if line[start]:
                yield {
                    "x": edges[start], "x2": edges[end], "y": edges[up], "y2": edges[up + 1],
                    "level": int(line[start]),
                }  # fmt: skip


def _sample_chart(reach: float) -> Any:
    scale = alt.Scale(domain=[-reach, reach], nice=False, zero=False)
    x, y = (
        channel(f"{field}:Q", title=None, axis=None, scale=scale) for channel, field in ((alt.X, "x"), (alt.Y, "y"))
    )
    shade = alt.Color("level:Q", scale=alt.Scale(scheme="greens", domain=[0, LEVELS]), legend=None)
    drawn = alt.Chart().transform_filter("isValid(datum.x)").mark_rect().encode(x=x, x2="x2", y=y, y2="y2", color=shade)
    # The frame of a panel, from one datum, so that empty panels have it, too.
    corners = {"x": -reach, "x2": reach, "y": -reach, "y2": reach}
    frame = alt.Chart().transform_aggregate(n="count()", groupby=["column", "row"])
    frame = frame.transform_calculate(**{name: str(value) for name, value in corners.items()})
    frame = frame.mark_rect(filled=False, stroke=style.PALE, strokeWidth=0.6).encode(x=x, x2="x2", y=y, y2="y2")
    return alt.layer(frame, drawn)


def _outside(it: Sketch, found: list[tuple[FigurePoint, _Looks]], reach: float) -> list[str]:
    shares = [(point, float((np.abs(looks.xy) > reach).any(axis=2).mean())) for point, looks in found]
    beyond = [f"{drawing.of_point(it, point)} ({share:.0%})" for point, share in shares if share >= 0.005]
    return [f"Samples beyond the panels: {drawing.some(beyond)}."] if beyond else []
