"""Embeddings in the plane, coloured by their class: t-SNE, or the unit circle of two dimensions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import files, palette, wording
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, Plot, Sketch

MOST_POINTS: Final = 2_000
"""Points of a panel; of more every k-th is drawn."""
MOST_NAMED: Final = 12
"""Classes that the legend names; of more the colours come again and no legend says which is which."""

_SHOWN: Final = {
    "tsne": "t-SNE of the directions of the {split} embeddings",
    "unit_circle": "Directions of the two-dimensional {split} embeddings",
}


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points [p, 2] with their classes [p], and how many there were before some were left out."""

    xy: NDArray[np.float64]
    label: NDArray[np.int64]
    count: int


def draw(it: Sketch) -> FigureDrawing:
    """One plot, a panel a point, of one repeat each: embeddings of several trainings share no axes."""
    pooled = files.read(it, _cloud, first=True)
    clouds = [(point, cloud) for point, (cloud,) in pooled.found]
    classes = sorted({int(label) for _, cloud in clouds for label in np.unique(cloud.label)})
    data = [
        Datum(point.labels, {"x": float(x), "y": float(y), "class": str(label)})
        for point, cloud in clouds
        for (x, y), label in zip(cloud.xy, cloud.label, strict=True)
    ]
    name = files.figure_of(it)
    said = f"{_SHOWN.get(name, name).format(split=files.split_of(it))}, by class; {wording.first_repeat(it)}."
    left_out = max((cloud.count for _, cloud in clouds if cloud.count > len(cloud.xy)), default=0)
    notes = [f"At most {MOST_POINTS:,} of {left_out:,} images are drawn in a panel."] if left_out else []
    named = [str(one) for one in classes] if len(classes) <= MOST_NAMED else []
    plot = Plot(name, _chart([str(one) for one in classes], data, circle=name == "unit_circle"), data, square=True)
    return FigureDrawing([plot], said=said, notes=[*pooled.notes, *notes], series=named)


def _cloud(arrays: Arrays) -> Cloud:
    xy, label = np.asarray(arrays["xy"], dtype=np.float64), files.vector(arrays, "label")
    if xy.ndim != 2 or xy.shape[1] != 2 or len(xy) != len(label) or not bool(np.isfinite(xy).all()):
        raise ValueError(f"xy has the shape {[*xy.shape]}, or holds what is no number")
    kept = slice(None, None, max(1, math.ceil(len(xy) / MOST_POINTS)))
    return Cloud(xy[kept], label[kept].astype(np.int64), len(xy))


def _chart(classes: Sequence[str], data: Sequence[Datum], *, circle: bool) -> Any:
    legend: dict[str, Any] = {} if len(classes) <= MOST_NAMED else {"legend": None}
    domain: dict[str, Any] = {"domain": [-1.1, 1.1]} if circle else {"zero": False}
    x, y = (
        channel(f"{field}:Q", title=None, axis=None, scale=alt.Scale(nice=False, **domain))
        for channel, field in ((alt.X, "x"), (alt.Y, "y"))
    )
    colour = alt.Color(
        "class:N", title="Class", scale=alt.Scale(domain=list(classes), range=palette.colours(classes)), **legend
    )
    shape = alt.Shape(
        "class:N", title="Class", scale=alt.Scale(domain=list(classes), range=palette.shapes(classes)), **legend
    )
    size, opacity = (16, 0.75) if len(data) <= 4_000 else (8, 0.6)
    points = alt.Chart().transform_filter("isValid(datum.x)").mark_point(filled=True, size=size, opacity=opacity)
    layers = [points.encode(x=x, y=y, color=colour, shape=shape, tooltip=[alt.Tooltip("class:N", title="class")])]
    if circle:
        # The circle itself, from the first datum alone, so that every panel has one.
        turn = alt.Chart().transform_aggregate(n="count()", groupby=["column", "row"])
        turn = turn.transform_calculate(turn="sequence(0, 6.35, 0.05)").transform_flatten(["turn"])
        turn = turn.transform_calculate(x="cos(datum.turn)", y="sin(datum.turn)")
        line = turn.mark_line(strokeWidth=0.6, color=palette.PALE).encode(x=x, y=y, order="turn:Q")
        layers.insert(0, line)
    return alt.layer(*layers)
