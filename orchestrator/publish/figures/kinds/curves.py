"""Curves of trainings over the iterations: the mean of the repeats with a band, or the norms of images."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Arrays, CurvePoints, Datum, FigureDrawing, Plot, Sketch
from orchestrator.views.runs import Statistic

MOST_POINTS: Final = 1_000
"""The most points of a line; a longer line is thinned."""
MOST_ALTOGETHER: Final = 50_000
"""The most points of all lines of a plot."""


def draw(it: Sketch) -> FigureDrawing:
    """Draws a plot for each curve key; each line is the mean over the repeats of a point's selected candidate."""
    if it.layout.data is not None:
        return _norm_traces(it)
    evaluated = "validation" if it.select.split == "validation" else "test"
    keys = [metric if "/" in metric else f"{evaluated}/{metric}" for metric in it.layout.metrics]
    trials = [trial.trial for point in it.drawn for trial in point.trials]
    curves = it.sources.curves(trials, keys) if trials else {}
    plots = [_plot(it, key, curves) for key in keys]
    absent = [plot.quantity for plot in plots if trials and not plot.data]
    reported = [f"No trial reported {', '.join(absent)}."] if absent else []
    return FigureDrawing(plots, caption=f"Curves of the trainings, {drawing.averaged(it)}.", notes=reported)


def _plot(it: Sketch, key: str, curves: Mapping[int, Mapping[str, CurvePoints]]) -> Plot:
    scale = drawing.factor(drawing.unit_of(it, key))
    most = max(2, min(MOST_POINTS, MOST_ALTOGETHER // max(1, len(it.drawn))))
    data = []
    for point in it.drawn:
        repeats = [curves.get(trial.trial, {}).get(key) or () for trial in point.trials]
        for step, mean in sketch.evenly(mean_curve(repeats), most):
            data.append(Datum(point.labels, {"step": step} | drawing.values(mean, it.layout.error, scale)))
    title = drawing.title_of(it, key)
    base = alt.Chart().transform_filter("isValid(datum.mean)").encode(x=_steps(data), color=style.colour(it))
    y = style.value_axis(title, log=it.layout.y_scale == "log")
    tooltip = style.tips(it, {"step:Q": "iteration", "mean:Q": title, "low:Q": "from", "high:Q": "to", "n:Q": "n"})
    return Plot(key, style.banded(it, base, y, tooltip), data)


def mean_curve(repeats: Sequence[CurvePoints]) -> list[tuple[int, Statistic]]:
    """The mean curve of several repeats: the statistic at each step at which every repeat has a number."""
    known = [
        {step: value for step, value in points if value is not None and math.isfinite(value)} for points in repeats
    ]
    if not known:
        return []
    shared = sorted(step for step in known[0] if all(step in other for other in known[1:]))
    return [(step, statistic([values[step] for values in known])) for step in shared]


def _steps(data: Sequence[Datum]) -> Any:
    longest = max((int(datum.values["step"] or 0) for datum in data), default=0)
    axis = alt.Axis(format="~s" if longest >= 10_000 else style.PLAIN, grid=False, tickCount=5)
    return alt.X("step:Q", title="iteration", scale=alt.Scale(nice=False, zero=False), axis=axis)


def _norm_traces(it: Sketch) -> FigureDrawing:
    """The norms ||f|| of a few training images, one line each, of one repeat."""
    files, missing = sketch.read(it, _traces, first=True)
    data = [
        Datum(point.labels, {"step": int(step), "mean": float(value), "image": image})
        for point, ((steps, norms),) in files
        for image, column in enumerate(norms.T)
        for step, value in zip(steps, column, strict=True)
    ]
    base = alt.Chart().transform_filter("isValid(datum.mean)").mark_line(strokeWidth=0.8, opacity=0.7)
    y = style.value_axis("norm", log=it.layout.y_scale == "log")
    chart = base.encode(x=_steps(data), y=y, detail="image:N", color=style.colour(it), strokeDash=style.dash(it))
    caption = f"Norms of the embeddings of single training images, of {drawing.first_repeat(it)}."
    return FigureDrawing([Plot("norm", alt.layer(chart), data)], caption=caption, notes=missing)


def _traces(arrays: Arrays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The iterations [w] and the norms [w, n] of at most `MOST_POINTS` windows and 20 images."""
    steps = sketch.vector(arrays, "step")
    norms = sketch.numbers(arrays["norm"], "norm", len(steps), None)
    kept = sketch.evenly(range(len(steps)), MOST_POINTS)
    return steps[kept], norms[kept, :20]
