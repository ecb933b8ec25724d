"""Distributions over images or pairs as densities: norms, cosines, and the variation of directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Arrays, Datum, FigureDrawing, Plot, Sketch
from orchestrator.spec.layouts import QUANTITIES
from orchestrator.views.runs import Labels


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts [b] between edges [b + 1], and the moments of the counted values."""

    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """The name of a histogram, and the names of its arrays in a data file."""

    name: str
    title: str
    edges: str = "edges"
    counts: str = "counts"
    mean: str | None = None
    variance: str | None = None


_FORMS: Final = (
    Quantity("norms", "norm", mean="mean", variance="variance"),
    Quantity("cos_ap", "cos(a, p)", counts="cos_ap"),
    Quantity("cos_an", "cos(a, n)", counts="cos_an"),
    Quantity("difference", "cos(a, p) − cos(a, n)", edges="difference_edges", counts="difference"),
    Quantity(
        "direction_variation", "direction variation (rad)",
        mean="direction_variation_angle_mean", variance="direction_variation_angle_var",
    ),
)  # fmt: skip

_SHOWN: Final = {
    "norms": "Norms of the {split} embeddings",
    "cosines": "Cosines between pairs of {split} embeddings",
    "direction_variation": "How far the directions of training images turn from look to look",
}


def draw(it: Sketch) -> FigureDrawing:
    """Draws a plot per quantity, such as norm or cosine: the outline of the mean density over a point's repeats."""
    name = sketch.figure_of(it)
    wanted = it.layout.show or QUANTITIES.get(name, ())
    quantities = [quantity for quantity in _FORMS if quantity.name in wanted]

    def histograms_of(arrays: Arrays) -> Mapping[Quantity, Histogram]:
        return {quantity: _histogram(arrays, quantity) for quantity in quantities}

    files, missing = sketch.read(it, _windows if it.layout.windows else histograms_of)
    plots = []
    for quantity in dict.fromkeys(quantity for _, repeats in files for held in repeats for quantity in held):
        data = [
            datum
            for point, repeats in files
            if (histograms := [held[quantity] for held in repeats if quantity in held])
            for datum in _data(it, histograms, point.labels)
        ]
        plots.append(_plot(it, quantity, data))
    each = ", each panel since the one before it" if it.layout.windows else ""
    caption = f"{_SHOWN.get(name, name).format(split=sketch.split_of(it))}{each}: densities over {drawing.repeats(it)}."
    return FigureDrawing(plots, caption=caption, notes=missing)


def _windows(arrays: Arrays) -> Mapping[Quantity, Histogram]:
    """The histogram of the angles of each window, in as many bins as the histogram of all windows."""
    steps, bins = sketch.vector(arrays, "step"), len(sketch.vector(arrays, "edges")) - 1
    angles = sketch.numbers(arrays["angle"], "angle", len(steps), None)
    means, variances = (sketch.vector(arrays, f"window_{name}", len(steps)) for name in ("mean", "var"))
    found = {}
    for step, turned, mean, variance in zip(steps, angles, means, variances, strict=True):
        counts, edges = np.histogram(turned, bins=bins)
        quantity = Quantity(f"window_{int(step)}", f"rad, to step {int(step):,}")
        found[quantity] = Histogram(edges, counts.astype(np.float64), float(mean), float(variance))
    return found


def _histogram(arrays: Arrays, quantity: Quantity) -> Histogram:
    edges = sketch.vector(arrays, quantity.edges)
    counts = sketch.vector(arrays, quantity.counts, len(edges) - 1)
    if not (np.diff(edges) > 0).all() or not (counts >= 0).all() or not counts.sum():
        raise ValueError(f"the array `{quantity.counts}` is not a histogram, or is empty")
    # If the file has no moments of the values, those of the middles of the bins approximate them.
    middles, shares = (edges[1:] + edges[:-1]) / 2, counts / counts.sum()
    mean = float(middles @ shares)
    variance = float((middles - mean) ** 2 @ shares)
    if quantity.mean is not None and quantity.variance is not None:
        mean, variance = (float(sketch.numbers(arrays[it], it)) for it in (quantity.mean, quantity.variance))
    return Histogram(edges, counts, mean, variance)


def pooled_density(repeats: Sequence[Histogram], bins: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean density [b] of several histograms with the edges [b + 1]; each histogram has the same weight.

    In `bins` bins from the least to the greatest edge, or in the histograms' own where they share them; a bin's counts
    are spread evenly over it.
    """
    first = repeats[0].edges
    if bins is None and all(np.array_equal(histogram.edges, first) for histogram in repeats):
        edges = first
    else:
        low, high = min(histogram.edges[0] for histogram in repeats), max(histogram.edges[-1] for histogram in repeats)
        edges = np.linspace(low, high, (bins or len(first) - 1) + 1)
    shares = []
    for histogram in repeats:
        below = np.concatenate([[0.0], np.cumsum(histogram.counts)]) / histogram.counts.sum()
        shares.append(np.diff(np.interp(edges, histogram.edges, below)))
    return edges, np.mean(shares, axis=0) / np.diff(edges)


def _data(it: Sketch, repeats: Sequence[Histogram], labels: Labels) -> list[Datum]:
    """The outline from left to right, and the moments as text."""
    edges, density = pooled_density(repeats, it.layout.bins)
    corners = zip(edges, [*density, 0.0], strict=True)
    data = [Datum(labels, {"x": float(edges[0]), "mean": 0.0})]
    data += [Datum(labels, {"x": float(edge), "mean": float(height)}) for edge, height in corners]
    if it.layout.moments:
        center = float(np.mean([histogram.mean for histogram in repeats]))
        variance = float(np.mean([histogram.variance for histogram in repeats]))
        text = f"mean {center:.3g}, var {variance:.3g}"
        series = it.domain(it.layout.colour) if it.layout.colour else [""]
        rank = series.index(labels.get(it.layout.colour or "", ""))
        data.append(Datum(labels, {"center": center, "variance": variance, "text": text, "rank": rank}))
    return data


def _plot(it: Sketch, quantity: Quantity, data: Sequence[Datum]) -> Plot:
    base = alt.Chart().transform_filter("isValid(datum.x)")
    x = alt.X(
        "x:Q", title=quantity.title, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(grid=False, tickCount=5)
    )
    y = style.value_axis("density", zero=True)
    colour = style.colour(it)
    placed = base.encode(x=x, y=y, color=colour)
    layers = [
        placed.mark_area(interpolate="step-after", opacity=0.18),
        placed.mark_line(interpolate="step-after", strokeWidth=1).encode(strokeDash=style.dash(it)),
    ]
    if it.layout.moments:
        words = alt.Chart().transform_filter("isValid(datum.text)").transform_calculate(down="6 + 9 * datum.rank")
        text = words.mark_text(align="right", fontSize=7, dx=-2).encode(
            x=alt.value("width"), y=alt.Y("down:Q", scale=None), text="text:N", color=colour
        )
        # Invisible points leave room for the text above the outlines.
        room = base.transform_calculate(top="datum.mean * 1.3").mark_point(opacity=0).encode(x=x, y="top:Q")
        layers += [text, room]
    return Plot(quantity.name, alt.layer(*layers), data)
