"""A metric of cells over two axes as coloured squares with their numbers; or the cosines between images."""

from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import encoding, files, measures, palette, wording
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, Plot, Sketch
from orchestrator.views.printing import printed

MOST_IMAGES: Final = 100
"""Images whose cosines are drawn one by one; of more, the means over classes are."""


def draw(it: Sketch) -> FigureDrawing:
    """One plot a metric."""
    if it.layout.data is not None:
        return _cosines(it)
    return FigureDrawing(
        [_plot(it, metric) for metric in it.layout.metrics], said=f"Test metrics, {wording.averaged(it)}."
    )


def _plot(it: Sketch, metric: str) -> Plot:
    unit = measures.unit_of(it, metric)
    across, up = it.layout.x or "", it.layout.y or ""
    columns, rows = it.printed(across), it.printed(up)
    decimals = (3 if unit == "fraction" else 1) if it.layout.decimals is None else it.layout.decimals
    data = []
    for point, statistic in measures.statistics(it, metric):
        values = measures.values(statistic, "std", measures.factor(unit))
        place = {"x": columns[point.labels.get(across, "")], "y": rows[point.labels.get(up, "")]}
        text = {"text": printed(statistic.mean, unit, decimals)}
        data.append(Datum(point.labels, values | place | text | measures.provenance(point)))
    title = measures.title_of(it, metric)
    return Plot(metric, _chart(it, title, data), data, least=(30 * len(columns), 20 * len(rows)))


def _chart(it: Sketch, title: str, data: list[Datum]) -> Any:
    across, up = it.layout.x or "", it.layout.y or ""
    known = [value for datum in data if isinstance(value := datum.values["mean"], float)]
    middle = (min(known) + max(known)) / 2 if known else 0.0
    x, y = encoding.across(it, across), encoding.upwards(it, up)
    tooltip = encoding.tips(it, {"x:N": it.names.said(across), "y:N": it.names.said(up), "mean:Q": title, "n:Q": "n"})
    colour = alt.Color("mean:Q", title=title, scale=alt.Scale(scheme="viridis"), legend=_bar())
    base = alt.Chart().transform_filter("isValid(datum.mean)").encode(x=x, y=y)
    light = alt.condition(f"datum.mean > {middle!r}", alt.value(palette.INK), alt.value("#ffffff"))
    return alt.layer(
        base.mark_rect().encode(color=colour, tooltip=tooltip),
        base.mark_text(fontSize=7.5).encode(text="text:N", color=light),
    )


def _bar() -> Any:
    return alt.Legend(orient="right", direction="vertical", gradientLength=90, gradientThickness=9, tickCount=4)


def _cosines(it: Sketch) -> FigureDrawing:
    """The cosines between images, or the means between classes where there are many; of one repeat."""
    pooled = files.read(it, _matrix, first=True)
    data = [
        Datum(point.labels, {"x": column, "y": row, "mean": float(value) if np.isfinite(value) else None})
        for point, (matrix,) in pooled.found
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
        .encode(x=x, y=y, color=colour, tooltip=encoding.tips(it, {"mean:Q": "cosine"}))
    )
    said = f"Cosines between {files.split_of(it)} images, sorted by class; {wording.first_repeat(it)}."
    return FigureDrawing([Plot("cosine", alt.layer(chart), data, square=True)], said=said, notes=pooled.notes)


def _matrix(arrays: Arrays) -> NDArray[np.float64]:
    cosine = np.asarray(arrays["cosine"], dtype=np.float64)
    if len(cosine) > MOST_IMAGES:
        cosine = np.asarray(arrays["class_cosine"], dtype=np.float64)
    if cosine.ndim != 2 or cosine.shape[0] != cosine.shape[1] or len(cosine) > MOST_IMAGES:
        raise ValueError(f"cosine has the shape {[*cosine.shape]}")
    return cosine
