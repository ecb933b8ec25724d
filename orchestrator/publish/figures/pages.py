"""The charts of the pages: curves of a trial and of a sweep, a cell's candidates, and plots over listed trials."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from orchestrator.publish.figures import style
from orchestrator.publish.figures.style import COLOURS, DASHES
from orchestrator.publish.labels import metric_title
from orchestrator.views.tables import CellCandidate, CellView
from orchestrator.views.trials import MOST_POINTS, Curve, CurveLine, CurveLines, Points
from workers.catalog import Catalog

_FIRST: Final = ("train/loss", "train/regularizer", "train/lr", "train/norm_mean", "train/norm_var")
_TITLES: Final = {
    "train/loss": "Loss", "train/regularizer": "Regularizer (unweighted)", "train/lr": "Learning rate",
    "train/norm_mean": "Norm mean (batch)", "train/norm_var": "Norm variance (batch)",
    "train/s_mu": "Mean singular value (batch)", "train/eta": "Weight of the regularizer",
    "train/cos_ap": "cos(a, p) (batch)", "train/cos_an": "cos(a, n) (batch)",
}  # fmt: skip
_WIDTH, _HEIGHT, _COLUMNS = 250, 140, 3


def curves(found: Sequence[Curve], title: str, parts: Catalog | None = None) -> dict[str, Any]:
    """Small multiples, one a curve: what training reports first, then what was evaluated; all share the steps."""
    shown = sorted((curve for curve in found if curve.points), key=lambda curve: _rank(curve.key))
    if not shown:
        return _specification(alt.Chart(alt.Data(values=[])).mark_point().properties(title=title))
    steps = [step for curve in shown for step, _ in curve.points]
    axis = alt.X("step:Q", title="step", scale=alt.Scale(domain=[min(steps), max(steps)], nice=False))
    multiples = [_multiple(curve, axis, parts) for curve in shown]
    together = alt.concat(*multiples, columns=_COLUMNS, spacing=24).properties(title=title, background="transparent")
    return _specification(together.configure_view(stroke=None).configure_axis(gridOpacity=0.6, tickCount=5))


def _specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    return specification


def _multiple(curve: Curve, axis: alt.X, parts: Catalog | None) -> alt.Chart:
    # A value that is no number breaks the line there instead of hiding that the training diverged.
    values = [{"step": step, "value": value if _drawable(value) else None} for step, value in curve.points]
    return (
        alt.Chart(alt.Data(values=values), title=curve_title(curve.key, parts), width=_WIDTH, height=_HEIGHT)
        .mark_line(point={"size": 12} if len(values) <= 60 else False, strokeWidth=1.5)
        .encode(
            x=axis,
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format="~g")),
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=curve.key, format=".5g")],
        )
    )


def _drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _rank(key: str) -> tuple[int, str]:
    return (_FIRST.index(key), "") if key in _FIRST else (len(_FIRST), key)


def curve_title(key: str, parts: Catalog | None) -> str:
    """A curve in print: `train/norm_var` -> Norm variance (batch), `test/recall@1` -> R@1 (test)."""
    split, _, metric = key.partition("/")
    return _TITLES.get(key) or f"{metric_title(metric, parts) if parts else metric} ({split})"


HEIGHT: Final = 360
POINTS, BANDS = "points", "bands"
"""The names of the data sets, by which a page changes the data and keeps the zoom."""


def lines_chart(found: CurveLines, title: str, *, log: bool = False) -> dict[str, Any]:
    """The chart with its data; `title` is what the values are. A log scale leaves out what is not above 0."""
    data = {POINTS: [row for line in found.traces for row in _points(line, log=log)]}
    if deviations := _bands(found, log=log):
        data[BANDS] = deviations
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
    layers = [bands, lines, dots] if deviations else [lines, dots]  # an empty area has no extent
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


_WIDTH, _HEIGHT = 520, 300
_LOUD, _FAINT = 0.85, 0.12
_CHOSEN: Final = "chosen[datum.trial]"
_ANY: Final = "chosen.any"


def scatter(points: Points, x: str, y: str, colour: str) -> dict[str, Any]:
    """Two columns of the rows."""
    brush = alt.selection_interval(name="brush")
    emphasis = alt.condition(f"!{_ANY} || {_CHOSEN}", alt.value(_LOUD), alt.value(_FAINT))
    chart = (
        alt.Chart(_data(points.rows))
        .mark_point(filled=True, size=42)
        .encode(
            x=_value(alt.X, points, "v0", x), y=_value(alt.Y, points, "v1", y),
            color=_colour(points, colour), opacity=emphasis,
            tooltip=[_tip("trial", "trial"), _tip("v0", x), _tip("v1", y), _tip("colour", colour)],
        )
        .add_params(brush)
    )  # fmt: skip
    return _finished(chart, points, f"{y} against {x}")


def parallel(points: Points, names: Sequence[str], colour: str) -> dict[str, Any]:
    """A line a row over several columns, each stretched to its own range, by logarithms where that spans decades."""
    columns = [[row[f"v{at}"] for row in points.rows] for at in range(len(names))]
    heights = [_heights(values) for values in columns]
    rows = [
        {
            "trial": row["trial"], "colour": row["colour"], "column": f"{at + 1}. {name}", "value": row[f"v{at}"],
            "height": heights[at][place],
        }
        for place, row in enumerate(points.rows)
        for at, name in enumerate(names)
    ]  # fmt: skip
    emphasis = alt.condition(f"{_ANY} ? {_CHOSEN} : true", alt.value(0.55), alt.value(0.05))
    chart = (
        alt.Chart(_data(rows))
        .mark_line(strokeWidth=1.2)
        .encode(
            x=alt.X("column:N", title=None, axis=alt.Axis(labelAngle=-20)),
            y=alt.Y("height:Q", title="least to greatest", axis=alt.Axis(labels=False, ticks=False)),
            color=_colour(points, colour), opacity=emphasis, detail="trial:N",
            tooltip=[_tip("trial", "trial"), _tip("column", "column"), _tip("value", "value")],
        )
    )  # fmt: skip
    said = "; ".join(
        f"{name}: {min(values):.4g} to {max(values):.4g}{' (log)' if _spans_decades(values) else ''}"
        for name, values in zip(names, columns, strict=True)
        if values
    )
    return _finished(chart, points, f"{', '.join(names)} of each row", said)


def sensitivity(points: Points, axis: str, number: str, colour: str) -> dict[str, Any]:
    """The mean over an axis, a line for each colour, with a band of one deviation over the rows that share a place."""
    numeric = all(_is_number(row["k0"]) for row in points.rows)
    rows = [
        row | {"x": float(row["k0"]) if numeric else row["k0"], "colour": row["k1"],
               "low": row["mean"] - (row["std"] or 0), "high": row["mean"] + (row["std"] or 0)}
        for row in points.rows
    ]  # fmt: skip
    placed = Points(rows, points.total)
    across = _value(alt.X, placed, "x", axis) if numeric else alt.X("x:N", title=axis, sort=None)
    whole = alt.Chart(_data(rows)).encode(x=across, color=_colour(placed, colour))
    titled = alt.Y("mean:Q", title=number, scale=alt.Scale(zero=False))
    band = whole.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", title=number), y2="high:Q")
    tips = [_tip("x", axis), _tip("colour", colour), _tip("mean", number), _tip("std", "deviation"), _tip("n", "rows")]
    line = whole.mark_line(point=True).encode(y=titled, tooltip=tips)
    return _finished(alt.layer(band, line), points, f"{number} over {axis}, bands of one deviation")


def heat(points: Points, x: str, y: str, number: str) -> dict[str, Any]:
    """The mean over two axes."""

    def order(key: str) -> list[str]:
        labels = dict.fromkeys(str(row[key]) for row in points.rows)
        return sorted(labels, key=lambda one: (not _is_number(one), float(one) if _is_number(one) else 0.0, one))

    chart = (
        alt.Chart(_data(points.rows))
        .mark_rect()
        .encode(
            x=alt.X("k0:N", title=x, sort=order("k0"), axis=alt.Axis(labelOverlap=True)),
            y=alt.Y("k1:N", title=y, sort=order("k1")[::-1], axis=alt.Axis(labelOverlap=True)),
            color=alt.Color("mean:Q", title=number, scale=alt.Scale(scheme="viridis", zero=False)),
            tooltip=[_tip("k0", x), _tip("k1", y), _tip("mean", number), _tip("std", "deviation"), _tip("n", "rows")],
        )
    )  # fmt: skip
    return _finished(chart, points, f"Mean {number} over {x} and {y}")


def history(points: Points, number: str, colour: str) -> dict[str, Any]:
    """What each row reached in the order in which they ended, and the best until then."""
    whole = alt.Chart(_data(points.rows)).encode(
        x=alt.X("place:Q", title="in the order in which they ended"), color=_colour(points, colour)
    )
    emphasis = alt.condition(f"!{_ANY} || {_CHOSEN}", alt.value(0.5), alt.value(_FAINT))
    titled = alt.Y("v0:Q", title=number, scale=alt.Scale(zero=False))
    tips = [_tip("trial", "trial"), _tip("v0", number), _tip("best", "best so far"), _tip("colour", colour)]
    dots = whole.mark_point(filled=True, size=26).encode(y=titled, opacity=emphasis, tooltip=tips)
    line = whole.mark_line(interpolate="step-after", strokeWidth=2).encode(y=alt.Y("best:Q", title=number))
    return _finished(alt.layer(dots, line), points, f"{number}, and the best so far as a line")


def distribution(points: Points, number: str, colour: str) -> dict[str, Any]:
    """Which share of the rows of each colour is at most so great."""
    chart = (
        alt.Chart(_data(points.rows))
        .transform_window(share="cume_dist()", sort=[alt.SortField("v0")], groupby=["colour"])
        .mark_line(interpolate="step-after")
        .encode(
            x=_value(alt.X, points, "v0", number),
            y=alt.Y("share:Q", title="share of the rows", axis=alt.Axis(format="%")),
            color=_colour(points, colour), tooltip=[_tip("v0", number), _tip("share", "share"), _tip("colour", colour)],
        )
    )  # fmt: skip
    return _finished(chart, points, f"Empirical distribution of {number}")


def importance(shares: Mapping[str, float], number: str, rows: int, said: str) -> dict[str, Any]:
    """How much each axis decides, as bars."""
    data = [{"axis": axis, "share": share} for axis, share in shares.items()]
    chart = (
        alt.Chart(_data(data))
        .mark_bar(color=style.COLOURS[0])
        .encode(
            x=alt.X("share:Q", title="importance", axis=alt.Axis(format="%")),
            y=alt.Y("axis:N", title=None, sort="-x"), tooltip=[_tip("axis", "axis"), _tip("share", "importance")],
        )
    )  # fmt: skip
    return _finished(chart, Points(data, rows), f"Which axes decide {number}", said, sampled=False)


def _finished(chart: Any, points: Points, title: str, said: str = "", *, sampled: bool = True) -> dict[str, Any]:
    """With its size, the parameter that links plots, and what is said below it."""
    parts = [said] if said else []
    if sampled and points.total > len(points.rows) and len(points.rows) >= MOST_POINTS:
        parts.insert(0, f"{len(points.rows):,} of {points.total:,} rows, drawn by lot, the same ones each time")
    chosen = alt.param(name="chosen", value={"any": False})
    linked = chart.properties(width=_WIDTH, height=_HEIGHT).add_params(chosen)
    made: dict[str, Any] = linked.properties(background="transparent").to_dict()
    made["usermeta"] = {"title": title, "notes": parts, "points": len(points.rows), "total": points.total}
    return made


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))


def _value(channel: Any, points: Points, field: str, title: str) -> Any:
    """The horizontal or vertical axis of a number."""
    log = _spans_decades([row[field] for row in points.rows])
    return channel(f"{field}:Q", title=title, scale=alt.Scale(type="log") if log else alt.Scale(zero=False))


def _heights(values: Sequence[float]) -> list[float]:
    """Where values lie between their least, 0, and their greatest, 1."""
    placed = [math.log(value) for value in values] if _spans_decades(values) else list(values)
    low = min(placed, default=0.0)
    width = max(placed, default=0.0) - low
    return [(value - low) / (width or 1.0) for value in placed]


def _spans_decades(values: Sequence[float]) -> bool:
    """Whether an axis of these is read by factors; zero and what is below has no logarithm."""
    return bool(values) and min(values) > 0 and max(values) >= 20 * min(values)


def _colour(points: Points, title: str) -> Any:
    labels = sorted({str(row["colour"]) for row in points.rows})
    scale = alt.Scale(domain=labels, range=[_drawn(one) for one in style.colours(labels)])
    return alt.Color("colour:N", title=title, scale=scale, legend=alt.Legend(symbolOpacity=1))


def _drawn(colour: str) -> str:
    return "#8b939c" if colour == "#000000" else colour  # black is no colour on a dark page


def _tip(field: str, title: str) -> Any:
    if field in {"v0", "v1", "mean", "std", "best", "share", "value"}:
        return alt.Tooltip(f"{field}:Q", title=title, format=".5~g")
    return alt.Tooltip(f"{field}:N", title=title)


def _is_number(label: Any) -> bool:
    try:
        return math.isfinite(float(label))
    except (TypeError, ValueError):
        return False


ASLANT: Final = 12


def candidates_chart(cell: CellView) -> dict[str, Any] | None:
    """A Vega-Lite specification with its data; none where no run has a score yet, or nothing competes."""
    runs = [
        {"candidate": _name(one), "score": trial.score, "what": _what(one), "trial": trial.trial}
        for one in cell.candidates
        for trial in one.trials
        if trial.score is not None
    ]
    if not runs or len(cell.candidates) < 2:
        return None
    means = [
        {"candidate": _name(one), "score": one.score, "what": _what(one)}
        for one in cell.candidates
        if one.score is not None
    ]
    order = [_name(one) for one in sorted(cell.candidates, key=lambda one: one.index)]
    # Aslant they are read best; beyond a dozen only upright ones stand beside each other, each second one if need be.
    many = len(order) > ASLANT
    labels = alt.Axis(labelAngle=-90 if many else -30, labelLimit=160, labelOverlap=many)
    x = alt.X("candidate:N", sort=order, title=_axes(cell), axis=labels)
    y = alt.Y("score:Q", title=cell.selection_key, scale=alt.Scale(zero=False), axis=alt.Axis(format="~g"))
    colour = alt.Color(
        "what:N", title=None, legend=alt.Legend(orient="bottom"),
        scale=alt.Scale(domain=["selected", "lost", "not eligible"], range=["#D55E00", "#0072B2", "#8b939c"]),
    )  # fmt: skip
    dots = alt.Chart(alt.NamedData("runs")).mark_circle(size=50, opacity=0.75)
    bars = alt.Chart(alt.NamedData("means")).mark_tick(thickness=2.5, size=26)
    tips = ["candidate:N", alt.Tooltip("score:Q", format=".4f")]
    layered = alt.layer(
        bars.encode(x=x, y=y, color=colour, tooltip=tips),
        dots.encode(x=x, y=y, color=colour, tooltip=["trial:N", *tips]),
    )
    made: dict[str, Any] = layered.properties(height=260, width="container").to_dict()
    return made | {"datasets": {"runs": runs, "means": means}}


def _name(one: CellCandidate) -> str:
    return " · ".join(one.labels.values()) or "untuned"


def _what(one: CellCandidate) -> str:
    return "selected" if one.selected else "lost" if one.status in {"complete", "pending"} else "not eligible"


def _axes(cell: CellView) -> str:
    return " · ".join(dict.fromkeys(axis for one in cell.candidates for axis in one.labels))
