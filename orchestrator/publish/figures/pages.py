"""The charts of the pages: curves of a trial and of a sweep, a cell's candidates, and plots over listed trials."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np

from orchestrator.publish.figures import style
from orchestrator.publish.figures.style import COLOURS, DASHES
from orchestrator.publish.labels import metric_facts
from orchestrator.spec.fields import finite
from orchestrator.views.operations import SYSTEM
from orchestrator.views.tables import CellCandidate, CellView
from orchestrator.views.trials import MOST_POINTS, ClassScores, Curve, CurveLine, CurveLines, Points
from workers.catalog import Catalog

_FIRST: Final = ("train/loss", "train/regularizer", "train/lr", "train/norm_mean", "train/norm_var")
_TITLES: Final = {
    "train/loss": "Loss", "train/regularizer": "Regularizer (unweighted)", "train/lr": "Learning rate",
    "train/norm_mean": "Norm mean (batch)", "train/norm_var": "Norm variance (batch)",
    "train/s_mu": "Mean singular value (batch)", "train/eta": "Weight of the regularizer",
    "train/cos_ap": "cos(a, p) (batch)", "train/cos_an": "cos(a, n) (batch)",
}  # fmt: skip
USAGE: Final = {
    f"{SYSTEM}gpu": "GPU in use (share)", f"{SYSTEM}gpu_memory": "GPU memory, all processes (GiB)",
    f"{SYSTEM}cpu": "CPUs in use", f"{SYSTEM}memory": "Memory (GiB)",
}  # fmt: skip
"""The titles of the curves of a machine's usage by key."""
_MULTIPLE_WIDTH, _MULTIPLE_HEIGHT, _COLUMNS = 250, 140, 3


def curves(found: Sequence[Curve], title: str, parts: Catalog | None = None) -> dict[str, Any]:
    """A page's small plots of training curves: first those that training reports, then evaluated metrics."""
    rank = {key: at for at, key in enumerate(_FIRST)}
    points = {curve.key: curve.points for curve in found if curve.points and not curve.key.startswith(SYSTEM)}
    keys = sorted(points, key=lambda key: (rank.get(key, len(rank)), key))
    return _multiples({key: points[key] for key in keys}, {key: curve_title(key, parts) for key in keys}, "step", title)


def usage(found: Mapping[str, Sequence[tuple[float, float | None]]], title: str) -> dict[str, Any]:
    """Small multiples of CPU, memory and GPU usage over the seconds of training."""
    shown = {key: found[key] for key in USAGE if found.get(key)}
    return _multiples(shown, USAGE, "seconds", title)


def _multiples(
    found: Mapping[str, Sequence[tuple[float, float | None]]], titles: Mapping[str, str], across: str, title: str
) -> dict[str, Any]:
    if not found:
        return _specification(alt.Chart(alt.Data(values=[])).mark_point().properties(title=title))
    places = [x for points in found.values() for x, _ in points]
    axis = alt.X(f"{across}:Q", title=across, scale=alt.Scale(domain=[min(places), max(places)], nice=False))
    multiples = []
    for key, points in found.items():
        # A value that is not a number breaks the line, which shows that the training diverged.
        values = [{across: x, "value": value if _is_number(value) else None} for x, value in points]
        chart = alt.Chart(alt.Data(values=values), title=titles[key], width=_MULTIPLE_WIDTH, height=_MULTIPLE_HEIGHT)
        line = chart.mark_line(point={"size": 12} if len(values) <= 60 else False, strokeWidth=1.5)
        y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=key in USAGE), axis=alt.Axis(format="~g"))
        tips = [alt.Tooltip(f"{across}:Q", format="~g"), alt.Tooltip("value:Q", title=key, format=".5g")]
        multiples.append(line.encode(x=axis, y=y, tooltip=tips))
    together = alt.concat(*multiples, columns=_COLUMNS, spacing=24).properties(title=title, background="transparent")
    return _specification(together.configure_view(stroke=None).configure_axis(gridOpacity=0.6, tickCount=5))


def _specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    return specification


def curve_title(key: str, parts: Catalog | None) -> str:
    """A curve in print: `train/norm_var` -> Norm variance (batch), `test/recall@1` -> R@1 (test)."""
    split, _, metric = key.partition("/")
    return (_TITLES | USAGE).get(key) or f"{metric_facts(metric, parts).title if parts else metric} ({split})"


HEIGHT: Final = 360
_SMALL_HEIGHT: Final = 220
POINTS, BANDS = "points", "bands"
"""The names of the data sets, by which a page replaces the data and keeps the zoom."""


def lines_charts(
    found: Sequence[CurveLines], titles: Sequence[str], *, log: bool = False, bands: bool = True
) -> dict[str, Any]:
    """The chart of curves, or small multiples of several keys under one legend."""
    drawn = [
        _lines(lines, title, str(at or ""), log=log, bands=bands)
        for at, (lines, title) in enumerate(zip(found, titles, strict=True))
    ]
    data = {name: rows for _, named in drawn for name, rows in named.items()}
    charts = [chart for chart, _ in drawn]
    if len(charts) == 1:
        return _specification(charts[0].properties(height=HEIGHT, width="container")) | {"datasets": data}
    multiples = [
        chart.properties(height=_SMALL_HEIGHT, title=title) for chart, title in zip(charts, titles, strict=True)
    ]
    specification = _specification(alt.concat(*multiples, columns=_COLUMNS))
    layers = {layer.get("name"): layer for chart in specification["concat"] for layer in chart["layer"]}
    # Altair gives every layer each selection, and Vega-Lite refuses the nearest point of a line.
    for param in specification.pop("params"):
        of_lines, of_dots = param.pop("views")
        view = of_dots if param["name"].startswith("near") else of_lines
        layers[view].setdefault("params", []).append(param)
    return specification | {"datasets": data}


def _lines(
    found: CurveLines, title: str, place: str, *, log: bool, bands: bool
) -> tuple[alt.LayerChart, dict[str, list[dict[str, Any]]]]:
    """A chart of curves and its data sets, whose names end in `place`.

    `title` names the values. A log scale leaves out values up to 0.
    """
    data = {POINTS + place: [row for line in found.traces for row in _points(line, log=log)]}
    deviations = [
        {"label": line.label, "x": x, "low": low, "high": high}
        for line in found.traces
        for x, low, high in line.band
        if bands and (not log or low > 0)
    ]
    if deviations:
        data[BANDS + place] = deviations
    x_title = "step" if found.x == "step" else "seconds trained"
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(format="~s", tickCount=8))
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False)
    y, low = (alt.Y(name, title=title, scale=scale, axis=alt.Axis(format="~g")) for name in ("y:Q", "low:Q"))
    # The wheel alone scrolls the page, also sideways with Shift.
    zoom = alt.selection_interval(bind="scales", name=f"zoom{place}", zoom="wheel![event.ctrlKey || event.altKey]")
    picked = alt.selection_point(fields=["label"], bind="legend", name=f"picked{place}")
    near = alt.selection_point(
        fields=["x", "label"], nearest=True, on="pointermove", clear="pointerout", empty=False, name=f"near{place}"
    )
    labels = [line.label for line in found.traces]
    legend = alt.Legend(
        orient="bottom", columns=2, labelLimit=420, symbolType="stroke", symbolOpacity=1, symbolLimit=0
    )  # fmt: skip
    colour, dash = (  # without black, which is invisible on dark pages
        channel("label:N", title=None, legend=legend, scale=alt.Scale(domain=labels, range=_repeated(looks, labels)))
        for channel, looks in ((alt.Color, COLOURS[:6]), (alt.StrokeDash, DASHES))
    )
    tooltip = [
        alt.Tooltip("label:N", title=" "), alt.Tooltip("x:Q", title=x_title, format=",.6~g"),
        alt.Tooltip("y:Q", title=title, format=".5g"), alt.Tooltip("n:Q", title="runs"),
    ]  # fmt: skip
    areas = alt.Chart(alt.NamedData(BANDS + place)).mark_area().encode(
        x=x, y=low, y2="high:Q", color=colour, opacity=alt.condition(picked, alt.value(0.16), alt.value(0.03))
    )  # fmt: skip
    lines = alt.Chart(alt.NamedData(POINTS + place)).mark_line(strokeWidth=1.6).encode(
        x=x, y=y, color=colour, strokeDash=dash, opacity=alt.condition(picked, alt.value(1.0), alt.value(0.12))
    ).add_params(zoom, picked)  # fmt: skip
    # A dot is visible near the pointer, and if no line leads to it: a single evaluation, or one between two gaps.
    visible = alt.when(near).then(alt.value(1.0)).when("datum.alone").then(alt.value(1.0)).otherwise(alt.value(0.0))
    dots = alt.Chart(alt.NamedData(POINTS + place)).transform_filter("isValid(datum.y)").mark_circle(size=46).encode(
        x=x, y=y, color=colour, tooltip=tooltip, opacity=visible
    ).add_params(near)  # fmt: skip
    layers = [areas, lines, dots] if deviations else [lines, dots]  # an empty area has no extent
    return alt.layer(*layers), data


def _points(line: CurveLine, *, log: bool) -> list[dict[str, Any]]:
    heights = [None if y is None or (log and y <= 0) else y for _, y in line.points]
    padded = [None, *heights, None]
    return [
        {"label": line.label, "x": x, "y": y, "n": line.runs, "alone": before is None and after is None}
        for (x, _), before, y, after in zip(line.points, padded[:-2], heights, padded[2:], strict=True)
    ]


def _repeated(looks: Sequence[Any], series: Sequence[object]) -> list[Any]:
    return [looks[at % len(looks)] for at in range(len(series))]


_WIDTH, _HEIGHT = 520, 300
_CHOSEN: Final = "chosen[datum.trial]"
_ANY: Final = "chosen.any"


def scatter(points: Points, means: Points, x: str, y: str, colour: str) -> dict[str, Any]:
    """A page's scatter plot of listed trials over the columns `x` and `y`, with the mean of each colour."""
    brush = alt.selection_interval(name="brush")
    whole = alt.Chart(_data(points.rows)).encode(
        x=_value(alt.X, points, "v0", x), y=_value(alt.Y, points, "v1", y), color=_colour(points, colour)
    )
    tips = [_tip("trial", "trial"), _tip("v0", x), _tip("v1", y), _tip("colour", colour)]
    dots = whole.mark_point(filled=True, size=42).encode(opacity=_emphasis(0.7), tooltip=tips).add_params(brush)
    shown = {row["colour"] for row in points.rows}
    rows = [
        {"colour": row["k0"], "v0": row["mean"], "v1": row["v1"], "n": row["n"]}
        for row in means.rows
        if row["k0"] in shown
    ]
    tips = [_tip("colour", colour), _tip("v0", f"mean {x}"), _tip("v1", f"mean {y}"), _tip("n", "rows")]
    whole.data = _data(rows)
    diamonds = whole.mark_point(filled=True, size=150, shape="diamond", stroke="#8b939c", strokeWidth=1.5)
    chart = alt.layer(dots, diamonds.encode(tooltip=tips))
    return _finished(chart, points, f"{y} against {x}", f"Diamonds are means by {colour}")


_TICKS: Final = 12
"""The most labels of an axis of parallel coordinates."""
_ABSENT: Final = "–"


def parallel(points: Points, axes: Sequence[str], numbers: Sequence[str], colour: str) -> dict[str, Any]:
    """A page's parallel-coordinates plot of listed trials over axes, without those of a single label, and numbers."""
    columns = [(name, [row[f"k{at}"] for row in points.rows]) for at, name in enumerate(axes)]
    columns = [(name, values) for name, values in columns if len(set(values)) > 1]
    columns += [(name, [row[f"v{at}"] for row in points.rows]) for at, name in enumerate(numbers)]
    order = [name for name, _ in columns]
    rows: list[dict[str, Any]] = []
    ticks: list[dict[str, Any]] = []
    for name, values in columns:
        heights, labels = _upright(values)
        shown = (_ABSENT if value is None else value for value in values)
        rows += [
            {"trial": row["trial"], "colour": row["colour"], "column": name, "value": value, "height": height}
            for row, value, height in zip(points.rows, shown, heights, strict=True)
        ]
        ticks += [{"column": name, "label": label, "height": height} for label, height in labels]
    x = alt.X("column:N", title=None, sort=order, scale=alt.Scale(type="point", padding=0.35), axis=alt.Axis(
        labelAngle=0, labelFontWeight="bold", orient="top", domain=False, ticks=False, grid=True, labelOverlap=False
    ))  # fmt: skip
    y = alt.Y("height:Q", title=None, axis=None, scale=alt.Scale(domain=[-0.04, 1.04], nice=False))
    opacity = min(0.5, max(0.1, 60 / len(points.rows)))
    emphasis = alt.condition(f"{_ANY} ? {_CHOSEN} : true", alt.value(opacity), alt.value(0.05))
    tips = [_tip("trial", "trial"), _tip("column", "column"), alt.Tooltip("value:N"), _tip("colour", colour)]
    lines = alt.Chart(_data(rows)).mark_line(strokeWidth=1.2).encode(
        x=x, y=y, color=_colour(points, colour), opacity=emphasis, detail="trial:N", tooltip=tips
    )  # fmt: skip
    marks = alt.Chart(_data(ticks)).encode(x=x, y=y)
    bars = marks.mark_tick(thickness=1, size=9, color="#8b939c")
    # The halo, in the page's colour, keeps words legible on lines.
    halo, words = (marks.mark_text(align="left", dx=7, fontSize=11, **style).encode(text="label:N")
                   for style in ({"style": "halo"}, {}))  # fmt: skip
    log = [name for name, values in columns if name in numbers and _spans_decades(values)]
    note = f"Logarithmic: {', '.join(log)}" if log else ""
    return _finished(alt.layer(lines, bars, halo, words), points, f"{', '.join(order)} of each row", note)


def _upright(values: Sequence[Any]) -> tuple[list[float], list[tuple[str, float]]]:
    """The heights of values on an axis from 0 to 1, and its ticks with their heights; missing values are lowest."""
    there = {value for value in values if value is not None}
    low = 0.12 if len(there) < len(set(values)) else 0.0  # room for missing values
    numeric = all(_is_number(value) for value in there)
    known: list[Any] = sorted(map(float, there)) if numeric else sorted(map(str, there), reverse=True)
    shares = _heights(known) if numeric else [at / max(1, len(known) - 1) for at in range(len(known))]
    heights = {value: low + (1 - low) * share for value, share in zip(known, shares, strict=True)}
    if numeric and len(known) > _TICKS:
        spaced = np.geomspace if _spans_decades(known) else np.linspace
        marks = [(value, low + (1 - low) * at / 5) for at, value in enumerate(spaced(known[0], known[-1], 6))]
    else:
        marks = [(value, heights[value]) for value in known[:: math.ceil(len(known) / _TICKS) or 1]]
    ticks = [(f"{value:.4g}" if numeric else str(value), height) for value, height in marks]
    if low:
        ticks.append((_ABSENT, 0.0))
    return [0.0 if value is None else heights[float(value) if numeric else value] for value in values], ticks


def sliced(points: Points, axis: str, number: str, colour: str) -> dict[str, Any]:
    """A page's chart of the mean number over an axis by colour, with a band of one standard deviation."""
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
    """A page's heat map of the mean number over two axes."""

    def order(key: str) -> list[str]:
        labels = dict.fromkeys(str(row[key]) for row in points.rows)
        return sorted(labels, key=lambda label: (0, float(label), label) if _is_number(label) else (1, 0.0, label))

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
    """A page's chart of each trial's number in the order in which trials ended, with the best so far."""
    whole = alt.Chart(_data(points.rows)).encode(
        x=alt.X("place:Q", title="in the order in which they ended"), color=_colour(points, colour)
    )
    titled = alt.Y("v0:Q", title=number, scale=alt.Scale(zero=False))
    tips = [_tip("trial", "trial"), _tip("v0", number), _tip("best", "best so far"), _tip("colour", colour)]
    dots = whole.mark_point(filled=True, size=26).encode(y=titled, opacity=_emphasis(0.5), tooltip=tips)
    line = whole.mark_line(interpolate="step-after", strokeWidth=2).encode(y=alt.Y("best:Q", title=number))
    return _finished(alt.layer(dots, line), points, f"{number}, and the best so far as a line")


def distribution(points: Points, number: str, colour: str) -> dict[str, Any]:
    """A page's chart of the cumulative distribution of a number over the trials of each colour."""
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


def importance(shares: Mapping[str, float], number: str, rows: int, note: str) -> dict[str, Any]:
    """A page's bar chart of the importance of each axis for a number."""
    data = [{"axis": axis, "share": share} for axis, share in shares.items()]
    chart = (
        alt.Chart(_data(data))
        .mark_bar(color=style.COLOURS[0])
        .encode(
            x=alt.X("share:Q", title="importance", axis=alt.Axis(format="%")),
            y=alt.Y("axis:N", title=None, sort="-x"), tooltip=[_tip("axis", "axis"), _tip("share", "importance")],
        )
    )  # fmt: skip
    return _finished(chart, Points(data, rows), f"Which axes decide {number}", note)


def _finished(chart: Any, points: Points, title: str, note: str = "") -> dict[str, Any]:
    """The chart with its size, the parameter that links plots, and notes."""
    notes = [note] if note else []
    if points.total > len(points.rows) >= MOST_POINTS:
        notes.insert(0, f"{len(points.rows):,} of {points.total:,} rows, drawn by lot, the same ones each time")
    chosen = alt.param(name="chosen", value={"any": False})
    linked = chart.properties(width=_WIDTH, height=_HEIGHT, background="transparent").add_params(chosen)
    return _specification(linked) | {
        "usermeta": {"title": title, "notes": notes, "points": len(points.rows), "total": points.total}
    }


def _emphasis(opacity: float) -> Any:
    """The opacity of rows, unless others are chosen."""
    return alt.condition(f"!{_ANY} || {_CHOSEN}", alt.value(opacity), alt.value(0.12))


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))


def _value(channel: Any, points: Points, field: str, title: str) -> Any:
    log = _spans_decades([row[field] for row in points.rows])
    return channel(f"{field}:Q", title=title, scale=alt.Scale(type="log") if log else alt.Scale(zero=False))


def _heights(values: Sequence[float]) -> list[float]:
    """Values scaled to their range, from 0 to 1."""
    placed = [math.log(value) for value in values] if _spans_decades(values) else list(values)
    low = min(placed, default=0.0)
    width = max(placed, default=0.0) - low
    return [(value - low) / (width or 1.0) for value in placed]


def _spans_decades(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) >= 20 * min(values)


def _colour(points: Points, title: str) -> Any:
    labels = sorted({str(row["colour"]) for row in points.rows})
    # Grey instead of black, which is invisible on dark pages.
    scale = alt.Scale(domain=labels, range=_repeated([*COLOURS[:6], "#8b939c"], labels))
    return alt.Color("colour:N", title=title, scale=scale, legend=alt.Legend(symbolOpacity=1))


def _tip(field: str, title: str) -> Any:
    if field in {"v0", "v1", "mean", "std", "best", "share", "value"}:
        return alt.Tooltip(f"{field}:Q", title=title, format=".5~g")
    return alt.Tooltip(f"{field}:N", title=title)


def _is_number(label: Any) -> bool:
    return finite(str(label)) is not None


_MOST_CLASSES, _CLASS_HEIGHT = 40, 30
_MEASURES: Final = {"recall": "recall", "precision": "precision", "f1": "F1"}


def classes_chart(found: ClassScores) -> dict[str, Any]:
    """Recall, precision and F1 of the first classes as bars."""
    shown = found.classes[:_MOST_CLASSES]
    rows = [
        {"class": one.name, "measure": title, "value": value, "queries": one.queries}
        for one in shown
        for measure, title in _MEASURES.items()
        if (value := getattr(one, measure)) is not None
    ]
    order, measures = list(dict.fromkeys(one.name for one in shown)), list(_MEASURES.values())
    scale = alt.Scale(domain=measures, range=COLOURS[:3])
    chart = (
        alt.Chart(_data(rows), height=_CLASS_HEIGHT * len(order))
        .mark_bar()
        .encode(
            y=alt.Y("class:N", title=None, sort=order, axis=alt.Axis(labelLimit=180)),
            yOffset=alt.YOffset("measure:N", sort=measures),
            x=alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5)),
            color=alt.Color("measure:N", title=None, scale=scale, legend=alt.Legend(orient="bottom")),
            tooltip=["class:N", "measure:N", alt.Tooltip("value:Q", format=".4f"), "queries:Q"],
        )
    )
    return _specification(chart.properties(width="container", autosize=alt.AutoSizeParams(type="fit-x")))


_ASLANT: Final = 12


def candidates_chart(cell: CellView) -> dict[str, Any] | None:
    """A page's Vega-Lite chart of a cell's candidates by score; `None` without scores or with a single candidate."""
    runs = [
        {"candidate": _name(candidate), "score": trial.score, "what": _what(candidate), "trial": trial.trial}
        for candidate in cell.candidates
        for trial in candidate.trials
        if trial.score is not None
    ]
    if not runs or len(cell.candidates) < 2:
        return None
    means = [
        {"candidate": _name(candidate), "score": candidate.score, "what": _what(candidate)}
        for candidate in cell.candidates
        if candidate.score is not None
    ]
    order = [_name(candidate) for candidate in sorted(cell.candidates, key=lambda candidate: candidate.index)]
    many = len(order) > _ASLANT  # more labels fit only upright
    labels = alt.Axis(labelAngle=-90 if many else -30, labelLimit=160, labelOverlap=many)
    axes = " · ".join(dict.fromkeys(axis for candidate in cell.candidates for axis in candidate.labels))
    x = alt.X("candidate:N", sort=order, title=axes, axis=labels)
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
    specification = _specification(layered.properties(height=260, width="container"))
    return specification | {"datasets": {"runs": runs, "means": means}}


def _name(candidate: CellCandidate) -> str:
    return " · ".join(candidate.labels.values()) or "untuned"


def _what(candidate: CellCandidate) -> str:
    if candidate.selected:
        return "selected"
    return "lost" if candidate.status in {"complete", "pending"} else "not eligible"
