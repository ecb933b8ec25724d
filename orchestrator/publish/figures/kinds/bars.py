"""A metric of cells as bars, next to one another if a colour distinguishes them, with a mark for a reference metric."""

from typing import Any

import altair as alt

from orchestrator.publish.figures import drawing, style
from orchestrator.publish.figures.sketch import Datum, FigureDrawing, Plot, Sketch


def draw(it: Sketch) -> FigureDrawing:
    """Draws a bar chart for each metric of the figure."""
    caption = f"Test metrics, {drawing.averaged(it)}."
    if it.layout.reference is not None:
        caption += f" Black marks: {drawing.title_of(it, it.layout.reference)}."
    return FigureDrawing([_plot(it, metric) for metric in it.layout.metrics], caption=caption)


def _plot(it: Sketch, metric: str) -> Plot:
    scale = drawing.factor(drawing.unit_of(it, metric))
    axis = it.layout.x or ""
    texts = it.printed(axis)
    data = []
    for point, statistic in drawing.statistics(it, metric):
        values = drawing.values(statistic, it.layout.error, scale) | {"x": texts[point.labels.get(axis, "")]}
        if it.layout.reference is not None:
            bound = drawing.measured(it, point, it.layout.reference)
            values["reference"] = None if bound is None else bound.mean * scale
        data.append(Datum(point.labels, values | drawing.provenance(point)))
    title = drawing.title_of(it, metric)
    bars_per_group = len(it.domain(it.layout.colour)) if it.layout.colour else 1
    return Plot(metric, _chart(it, title), data, least=(10 * bars_per_group * len(texts), 0))


def _chart(it: Sketch, title: str) -> Any:
    axis = it.layout.x or ""
    named = it.names.axis_name(axis)
    placed: dict[str, Any] = {"x": style.across(it, axis)}
    if it.layout.colour is not None and it.layout.colour != axis:
        order = list(it.printed(it.layout.colour).values())
        placed["xOffset"] = alt.XOffset("colour:N", sort=order, scale=alt.Scale(domain=order, paddingInner=0.12))
    tooltip = style.tips(it, {"x:N": named, "mean:Q": title, "low:Q": "from", "high:Q": "to", "n:Q": "n"})
    base = alt.Chart().transform_filter("isValid(datum.mean)").encode(**placed)
    y = style.value_axis(title, zero=True)
    layers = [
        base.mark_bar(opacity=0.85).encode(y=y, color=style.colour(it, symbol="square"), tooltip=tooltip),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=0.9, color=style.INK)
        .encode(y="low:Q", y2="high:Q"),
    ]
    if it.layout.reference is not None:
        bound = base.transform_filter("isValid(datum.reference)")
        layers.append(bound.mark_tick(thickness=1.6, color=style.INK, bandSize=14).encode(y="reference:Q"))
    return alt.layer(*layers)
