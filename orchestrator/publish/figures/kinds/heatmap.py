"""A metric of cells over two axes as coloured squares with their numbers; cosines between images; or samples."""

from functools import partial
from typing import Any, Final, NamedTuple

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import drawing, sample_maps, sketch, style
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, Plot, Sketch, Value
from orchestrator.views.tables import decimals_of, printed

_SHARP: Final = 900  # pixels across of a picture of cosines
MOST_BESIDE: Final = 4_000
"""Images, or class vectors, of a picture of cosines."""
MOST_IMAGES: Final = 100
"""Images whose cosines are drawn one by one; of more, the means over classes are."""


def draw(it: Sketch) -> FigureDrawing:
    """One plot a metric."""
    if it.layout.data is not None:
        drawn = {"heat_map_stages": _stages, "samples": sample_maps.draw}
        return drawn.get(sketch.figure_of(it), _cosines)(it)
    return FigureDrawing(
        [_plot(it, metric) for metric in it.layout.metrics], said=f"Test metrics, {drawing.averaged(it)}."
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
    tooltip = style.tips(it, {"x:N": it.names.said(across), "y:N": it.names.said(up), "mean:Q": title, "n:Q": "n"})
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
    """The cosines between images, or the means between classes where there are many; of one repeat."""
    pooled = sketch.read(it, _matrix, first=True)
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
        .encode(x=x, y=y, color=colour, tooltip=style.tips(it, {"mean:Q": "cosine"}))
    )
    said = f"Cosines between {sketch.split_of(it)} images, sorted by class; {drawing.first_repeat(it)}."
    return FigureDrawing([Plot("cosine", alt.layer(chart), data, square=True)], said=said, notes=pooled.notes)


def _matrix(arrays: Arrays) -> NDArray[np.float64]:
    cosine = np.asarray(arrays["cosine"], dtype=np.float64)
    if len(cosine) > MOST_IMAGES:
        cosine = np.asarray(arrays["class_cosine"], dtype=np.float64)
    if cosine.ndim != 2 or cosine.shape[0] != cosine.shape[1] or len(cosine) > MOST_IMAGES:
        raise ValueError(f"cosine has the shape {[*cosine.shape]}")
    return cosine


def _stages(it: Sketch) -> FigureDrawing:
    """The cosines between training images and class vectors, a plot a stage, as pictures: they are many."""
    pooled = sketch.read(it, partial(sketch.read_stages, convert=_seen), first=True)
    chart = partial(_pictured, it)
    plots = []
    wanted, absent = sketch.drawn(it, [found for _, (found,) in pooled.found])
    for stage in wanted:
        data = [Datum(point.labels, _values(found[stage])) for point, (found,) in pooled.found if stage in found]
        plots.append(Plot(stage.key, chart, data, title=stage.title, square=True, unlisted=("picture",)))
    shown = "Cosines between training images, across, and what the loss has learned of their classes, upwards"
    said = f"{shown}; both sorted by class; {drawing.first_repeat(it)}."
    return FigureDrawing(plots, said=said, notes=[*pooled.notes, *absent])


class Seen(NamedTuple):
    """The cosines [m, n] of a stage, and which of them are of an image and its own class."""

    cosine: NDArray[np.float64]
    own: NDArray[np.bool_]


def _seen(arrays: Arrays, at: int) -> Seen:
    cosine = np.asarray(arrays["cosine"], dtype=np.float64)[at].T
    if cosine.ndim != 2 or not cosine.size or max(cosine.shape) > MOST_BESIDE or not bool(np.isfinite(cosine).all()):
        raise ValueError(f"cosine has the shape {[*cosine.shape]}, or holds what is no number")
    label = sketch.vector(arrays, "label", cosine.shape[1])
    classes = sketch.vector(arrays, "proxy_label", cosine.shape[0]) if "proxy_label" in arrays else label
    return Seen(cosine, classes[:, None] == label)


def _values(seen: Seen) -> dict[str, Value]:
    """The mean cosines to an image's own class and to others, and the picture of all."""
    own, others = (seen.cosine[of] for of in (seen.own, ~seen.own))
    means = {"own": float(own.mean()) if own.size else None, "others": float(others.mean()) if others.size else None}
    return {**means, "picture": style.address(style.png(_coloured(seen.cosine)))}


def _coloured(cosine: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The colours of cosines, the first row at the bottom; each a square of some pixels, which stay sharp in print."""
    known = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in style.DIVERGING])
    at = np.linspace(-1, 1, len(known))
    channels = [np.interp(cosine.clip(-1, 1), at, known[:, channel]) for channel in range(3)]
    pixels = np.stack(channels, axis=-1).round().astype(np.uint8)[::-1]
    sharp = max(1, _SHARP // max(cosine.shape))
    return pixels.repeat(sharp, axis=0).repeat(sharp, axis=1)


def _pictured(it: Sketch, width: int, height: int) -> Any:
    """The picture, with a key to its colours, which nothing else in the drawing has."""
    scale = alt.Scale(domain=np.linspace(-1, 1, len(style.DIVERGING)).tolist(), range=[*style.DIVERGING])
    scale.interpolate = "rgb"
    colour = alt.Color("own:Q", title="cosine", scale=scale, legend=_bar())
    key = alt.Chart().transform_filter("isValid(datum.picture)").mark_point(opacity=0)
    tooltip = style.tips(it, {"own:Q": "mean, own class", "others:Q": "mean, other classes"})
    return style.chart(width, height, aspect=False) + key.encode(color=colour, tooltip=tooltip)
