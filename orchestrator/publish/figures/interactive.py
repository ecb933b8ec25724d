"""Curves as a chart for a page: one can zoom, pick lines in the legend and read values; a Vega-Lite specification."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from orchestrator.publish.figures.palette import COLOURS, DASHES
from orchestrator.views.curves import CurveLine, CurveLines

HEIGHT: Final = 360
POINTS, BANDS = "points", "bands"
"""The names of the data sets, by which a page changes the data and keeps the zoom."""


def chart(found: CurveLines, title: str, *, log: bool = False) -> dict[str, Any]:
    """The chart with its data; `title` is what the values are. A log scale leaves out what is not above 0."""
    data = {POINTS: [row for one in found.traces for row in _points(one, log=log)], BANDS: list(_bands(found, log=log))}
    x_title = "step" if found.x == "step" else "seconds trained"
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(format="~s", tickCount=8))
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False)
    y, low = (alt.Y(name, title=title, scale=scale, axis=alt.Axis(format="~g")) for name in ("y:Q", "low:Q"))
    # A wheel alone scrolls the page, and with Shift it turns sideways.
    zoom = alt.selection_interval(bind="scales", name="zoom", zoom="wheel![event.ctrlKey || event.altKey]")
    picked = alt.selection_point(fields=["label"], bind="legend", name="picked")
    near = alt.selection_point(
        fields=["x", "label"], nearest=True, on="pointermove", clear="pointerout", empty=False, name="near"
    )
    colour, dash = _distinct([one.label for one in found.traces])
    tooltip = [
        alt.Tooltip("label:N", title=" "), alt.Tooltip("x:Q", title=x_title, format=",.6~g"),
        alt.Tooltip("y:Q", title=title, format=".5g"), alt.Tooltip("n:Q", title="runs"),
    ]  # fmt: skip
    bands = alt.Chart(alt.NamedData(BANDS)).mark_area().encode(
        x=x, y=low, y2="high:Q", color=colour, opacity=_lit(picked, 0.16, 0.03)
    )  # fmt: skip
    lines = alt.Chart(alt.NamedData(POINTS)).mark_line(strokeWidth=1.6).encode(
        x=x, y=y, color=colour, strokeDash=dash, opacity=_lit(picked, 1.0, 0.12)
    ).add_params(zoom, picked)  # fmt: skip
    dots = alt.Chart(alt.NamedData(POINTS)).transform_filter("isValid(datum.y)").mark_circle(size=46).encode(
        x=x, y=y, color=colour, tooltip=tooltip, opacity=_seen(near)
    ).add_params(near)  # fmt: skip
    layers = [bands, lines, dots] if data[BANDS] else [lines, dots]  # an area of nothing has no extent
    made: dict[str, Any] = alt.layer(*layers).properties(height=HEIGHT, width="container").to_dict()
    return made | {"datasets": data}


def _distinct(labels: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """A colour and a dash for each line; black, which dark pages swallow, is none of them."""
    legend = alt.Legend(orient="bottom", columns=2, labelLimit=420, symbolType="stroke", symbolOpacity=1)
    colours = alt.Scale(domain=labels, range=_again(COLOURS[:6], len(labels)))
    dashes = alt.Scale(domain=labels, range=_again(DASHES, len(labels)))
    return (
        alt.Color("label:N", title=None, scale=colours, legend=legend),
        alt.StrokeDash("label:N", title=None, scale=dashes, legend=legend),
    )


def _lit(by: alt.Parameter, lit: float, other: float) -> Any:
    return alt.condition(by, alt.value(lit), alt.value(other))


def _seen(near: alt.Parameter) -> Any:
    """A dot is seen beside the pointer, and where no line leads to it: a single evaluation, or one between two gaps."""
    return alt.when(near).then(alt.value(1.0)).when("datum.alone").then(alt.value(1.0)).otherwise(alt.value(0.0))


def _points(one: CurveLine, *, log: bool) -> list[dict[str, Any]]:
    heights = [None if y is None or (log and y <= 0) else y for _, y in one.points]
    padded = [None, *heights, None]
    return [
        {"label": one.label, "x": x, "y": y, "n": one.runs, "alone": before is None and after is None}
        for (x, _), before, y, after in zip(one.points, padded[:-2], heights, padded[2:], strict=True)
    ]


def _bands(found: CurveLines, *, log: bool) -> list[dict[str, Any]]:
    return [
        {"label": one.label, "x": x, "low": low, "high": high}
        for one in found.traces
        for x, low, high in one.band
        if not log or low > 0
    ]


def _again(these: Sequence[Any], number: int) -> list[Any]:
    return [these[at % len(these)] for at in range(number)]
