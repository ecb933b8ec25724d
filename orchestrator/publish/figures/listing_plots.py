"""The plots beside a listing, as Vega-Lite: they share the marks and colours of figures, and are linked by `chosen`.

Rows that are chosen elsewhere stand out: `chosen` is a parameter whose value maps their trials to true. `brush` is the
part of a plot that a person drew a frame around.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from orchestrator.publish.figures import palette
from orchestrator.views.listings import MOST_POINTS, Points

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
        .mark_bar(color=palette.COLOURS[0])
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
    scale = alt.Scale(domain=labels, range=[_drawn(one) for one in palette.colours(labels)])
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
