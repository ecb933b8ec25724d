"""Embeddings in the plane, coloured by their class: t-SNE, or the unit circle; gradients against norms."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, Plot, Sketch, Stage
from orchestrator.views.runs import Labels

MOST_POINTS: Final = 2_000
"""The most points of a panel; of more, every k-th is drawn."""
MOST_NAMED: Final = 12
"""The most classes with a legend; of more, colours repeat without a legend."""

_SHOWN: Final = {
    "tsne": "t-SNE of the directions of the {split} embeddings",
    "tsne_stages": "t-SNE of the directions of training images",
    "unit_circle": "Directions of the two-dimensional {split} embeddings",
    "gradients": "The size of the loss's gradient against the norm of the embedding, of images of a batch",
}
_STAR: Final = {
    "shape": "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z",
    "size": 60, "color": "#000080", "stroke": "#ffffff", "strokeWidth": 0.4,
}  # fmt: skip
"""Navy, as in ISA's figures, with a white rim to stand out among points."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """Embedded points [p, 2] with their classes [p], and the number of points before thinning."""

    xy: NDArray[np.float64]
    label: NDArray[np.int64]
    count: int
    proxies: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))  # class vectors, [m, 2]
    owner: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # their classes, [m]


def draw(it: Sketch) -> FigureDrawing:
    """Draws embeddings in the plane, with a panel for each point and repeat (axes differ), and a plot per stage."""
    name = sketch.figure_of(it)
    staged = name == "tsne_stages"
    sized = name == "gradients"
    whole = _sizes if sized else _whole
    files, missing = sketch.read(it, partial(sketch.read_stages, convert=_stage) if staged else whole, first=True)
    every = [cloud for _, (found,) in files for cloud in found.values()]
    classes = [str(label) for label in sorted({int(label) for cloud in every for label in np.unique(cloud.label)})]
    plots = []
    wanted, absent = sketch.drawn(it, [found for _, (found,) in files])
    for stage in wanted:
        data = [datum for point, (found,) in files if stage in found for datum in _data(found[stage], point.labels)]
        chart = _chart(classes, data, circle=name == "unit_circle", sized=sized)
        plots.append(Plot(stage.key if staged else name, chart, data, title=stage.title if staged else "", square=True))
    starred = any(len(cloud.proxies) for cloud in every)
    stars = "; stars are what the loss has learned of each class" if starred else ""
    shown = _SHOWN.get(name, name).format(split=sketch.split_of(it))
    by = "iteration" if sized else "class"
    caption = f"{shown}, by {by}{stars}; {drawing.first_repeat(it)}."
    left_out = max((cloud.count for cloud in every if cloud.count > len(cloud.xy)), default=0)
    notes = [f"At most {MOST_POINTS:,} of {left_out:,} images are drawn in a panel."] if left_out else []
    series = classes if len(classes) <= MOST_NAMED else []
    return FigureDrawing(plots, caption, notes=[*missing, *absent, *notes], series=series)


def _data(cloud: Cloud, labels: Labels) -> Iterator[Datum]:
    for (x, y), label in zip(cloud.xy, cloud.label, strict=True):
        yield Datum(labels, {"x": float(x), "y": float(y), "class": str(label)})
    for (x, y), label in zip(cloud.proxies, cloud.owner, strict=True):
        yield Datum(labels, {"x": float(x), "y": float(y), "class": str(label), "proxy": 1})


def _whole(arrays: Arrays) -> Mapping[Stage, Cloud]:
    """The only stage of a file without stages."""
    return {Stage(0, epochs=False): _cloud(arrays["xy"], sketch.vector(arrays, "label"))}


def _sizes(arrays: Arrays) -> Mapping[Stage, Cloud]:
    """Norms and gradients of batches, with the iteration in place of the class."""
    norm, gradient = (np.asarray(arrays[name], dtype=np.float64) for name in ("norm", "gradient"))
    steps = np.repeat(sketch.vector(arrays, "step"), norm.shape[-1])
    return {Stage(0, epochs=False): _cloud(np.stack([norm.ravel(), gradient.ravel()], axis=1), steps)}


def _stage(arrays: Arrays, at: int) -> Cloud:
    cloud = _cloud(arrays["xy"][at], sketch.vector(arrays, "label"))
    if "proxy_xy" not in arrays:
        return cloud
    proxies = _cloud(arrays["proxy_xy"][at], sketch.vector(arrays, "proxy_label"))
    return replace(cloud, proxies=proxies.xy, owner=proxies.label)


def _cloud(given: NDArray[Any], label: NDArray[np.float64]) -> Cloud:
    xy = sketch.numbers(given, "xy", len(label), 2)
    kept = slice(None, None, max(1, math.ceil(len(xy) / MOST_POINTS)))
    return Cloud(xy[kept], label[kept].astype(np.int64), len(xy))


def _chart(classes: Sequence[str], data: Sequence[Datum], *, circle: bool, sized: bool) -> Any:
    legend: dict[str, Any] = {} if len(classes) <= MOST_NAMED else {"legend": None}
    domain: dict[str, Any] = {"domain": [-1.1, 1.1]} if circle else {"zero": False, "padding": 8}
    titles = {"x": "norm", "y": "gradient"}
    bare: dict[str, Any] = {} if sized else {"axis": None}
    x, y = (
        channel(f"{field}:Q", title=titles[field] if sized else None, scale=alt.Scale(nice=False, **domain), **bare)
        for channel, field in ((alt.X, "x"), (alt.Y, "y"))
    )
    what = "Iteration" if sized else "Class"
    colour, shape = (
        channel("class:N", title=what, scale=alt.Scale(domain=list(classes), range=looks), **legend)
        for channel, looks in ((alt.Color, style.colours(classes)), (alt.Shape, style.shapes(classes)))
    )
    size, opacity = (16, 0.75) if len(data) <= 4_000 else (8, 0.6)
    starred = any("proxy" in datum.values for datum in data)
    images = "isValid(datum.x) && !datum.proxy" if starred else "isValid(datum.x)"
    points = alt.Chart().transform_filter(images).mark_point(filled=True, size=size, opacity=opacity)
    layers = [points.encode(x=x, y=y, color=colour, shape=shape, tooltip=[alt.Tooltip("class:N", title=what.lower())])]
    if starred:
        stars = alt.Chart().transform_filter("datum.proxy").mark_point(filled=True, opacity=1, **_STAR)
        layers.append(stars.encode(x=x, y=y, tooltip=[alt.Tooltip("class:N", title="of class")]))
    if circle:
        # The circle, from one datum per panel.
        turn = alt.Chart().transform_aggregate(n="count()", groupby=["column", "row"])
        turn = turn.transform_calculate(turn="sequence(0, 6.35, 0.05)").transform_flatten(["turn"])
        turn = turn.transform_calculate(x="cos(datum.turn)", y="sin(datum.turn)")
        line = turn.mark_line(strokeWidth=0.6, color=style.PALE).encode(x=x, y=y, order="turn:Q")
        layers.insert(0, line)
    return alt.layer(*layers)
