"""A metric of cells over an axis, one line per colour; or the singular values of a spectrum over their rank."""

from functools import partial
from typing import Any

import altair as alt

from orchestrator.publish.aggregate import statistic
from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Datum, FigureDrawing, Plot, Sketch, Value
from orchestrator.spec.fields import finite


def draw(it: Sketch) -> FigureDrawing:
    """Draws a plot per metric: a line through the mean of each point, with error bars."""
    if it.layout.data is not None:
        return _spectrum(it)
    return FigureDrawing(
        [_plot(it, metric) for metric in it.layout.metrics], caption=f"Test metrics, {drawing.averaged(it)}."
    )


def _plot(it: Sketch, metric: str) -> Plot:
    scale = drawing.factor(drawing.unit_of(it, metric))
    axis, numeric = it.layout.x or "", style.is_numeric(it)
    texts = it.printed(axis)
    data = []
    for point, measured in drawing.statistics(it, metric):
        label = point.labels.get(axis, "")
        x: Value = finite(label) if numeric else texts[label]
        # A point without a number on a numeric axis is a level, such as a baseline without eta.
        placed = drawing.values(measured, it.layout.error, scale) | {"x": x, "level": int(x is None)}
        data.append(Datum(point.labels, placed | drawing.provenance(point)))
    title = drawing.title_of(it, metric)
    return Plot(metric, alt.layer(*_layers(it, title, data)), data)


def _layers(it: Sketch, title: str, data: list[Datum]) -> list[Any]:
    axis = it.layout.x or ""
    named, numeric = it.names.axis_name(axis), style.is_numeric(it)
    known = [value for datum in data if isinstance(value := datum.values["x"], float)]
    log = it.layout.x_scale == "log"
    x = style.number_axis(named, known, log=log) if numeric else style.across(it, axis)
    y = style.value_axis(title, log=it.layout.y_scale == "log")
    colour = style.colour(it, symbol="shape")
    tooltip = style.tips(
        it, {f"x:{'Q' if numeric else 'N'}": named, "mean:Q": title, "low:Q": "from", "high:Q": "to", "n:Q": "n"}
    )
    base = alt.Chart().transform_filter("isValid(datum.mean) && datum.level === 0").encode(x=x, color=colour)
    layers = [
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=0.8).encode(y="low:Q", y2="high:Q"),
        *style.dashed(it, base.encode(y=y), "line"),
        base.mark_point(filled=True, opacity=1, size=28).encode(y=y, shape=style.shape(it), tooltip=tooltip),
    ]
    if any(datum.values["level"] for datum in data):
        level = alt.Chart().transform_filter("datum.level === 1").encode(y=y, color=colour)
        layers += style.dashed(it, level, "rule", strokeWidth=1.2)
    return layers


def _spectrum(it: Sketch) -> FigureDrawing:
    """Singular values, the largest first: the mean over repeats."""
    files, missing = sketch.read(it, partial(sketch.vector, name="singular"))
    data = []
    for point, repeats in files:
        for rank, values in enumerate(zip(*repeats, strict=False), start=1):
            shown = drawing.values(statistic(list(map(float, values))), it.layout.error, 1.0)
            low = shown["low"]  # the band ends at zero, as no singular value is negative
            shown |= {"x": rank, "low": max(0.0, low) if isinstance(low, float) else low}
            data.append(Datum(point.labels, shown))
    title, log = "singular value", it.layout.y_scale == "log"
    x = alt.X("x:Q", title="rank", scale=alt.Scale(nice=False), axis=alt.Axis(grid=False, tickMinStep=1))
    base = alt.Chart().transform_filter("isValid(datum.mean)").encode(x=x, color=style.colour(it))
    y = style.value_axis(title, log=log, zero=not log)
    tooltip = style.tips(it, {"x:Q": "rank", "mean:Q": title, "n:Q": "n"})
    caption = f"Singular values of the directions of the {sketch.split_of(it)} embeddings, {drawing.averaged(it)}."
    plot = Plot("singular", style.banded(it, base, y, tooltip), data)
    return FigureDrawing([plot], caption=caption, notes=missing)
