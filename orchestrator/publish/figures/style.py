"""How figures look: colours, channels, pictures, and panels put together for a paper."""

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures.sketch import FigureDrawing, Plot, Sketch, Value
from orchestrator.publish.labels import one_line, width

# Okabe and Ito's, without their yellow, which paper swallows.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: Final = ([1, 0], [5, 2], [1.5, 1.5], [7, 2, 1.5, 2], [3, 3], [9, 2], [5, 1.5, 1.5, 1.5, 1.5, 1.5])
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

DIVERGING: Final = (
    "#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb", "#fce0ba", "#fbbf74", "#e8932f", "#c5690d",
    "#994a07",
)  # fmt: skip
"""From least over none to most: Vega's blueorange."""

INK: Final = "#1a1a1a"
GREY: Final = "#5f5f5f"
PALE: Final = "#dedede"


def colours(series: Sequence[object]) -> list[str]:
    """A colour for each of some series; after seven they come again."""
    return [COLOURS[at % len(COLOURS)] for at in range(len(series))]


def dashes(series: Sequence[object]) -> list[list[float]]:
    """A dash for each; where a colour comes again it has another dash."""
    return [[*DASHES[(at + at // len(COLOURS)) % len(DASHES)]] for at in range(len(series))]


def shapes(series: Sequence[object]) -> list[str]:
    """A shape for each; where a colour comes again it has another shape."""
    return [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in range(len(series))]


PLAIN: Final = ".6~g"
"""The format of plain numbers; without the digits Vega would write 80 as 8e+1."""

_FEW: Final = 8  # numbers on an axis that each get a tick of their own
_WIDE, _NARROW = 250, 140  # a panel alone, and one beside others


def number(label: str) -> float | None:
    """The number that a label is, if it is one."""
    try:
        found = float(label)
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None


def colour(it: Sketch, *, symbol: str = "stroke") -> Any:
    """The colour of each label of the figure's colour axis, with the legend; one colour without such an axis."""
    if it.layout.colour is None:
        return alt.value(COLOURS[0])
    texts = list(it.printed(it.layout.colour).values())
    scale = alt.Scale(domain=texts, range=colours(texts))
    forms: dict[str, dict[str, Any]] = {
        "stroke": {"symbolType": "stroke", "symbolSize": 420},  # long enough for a dash and its gap
        "square": {"symbolType": "square"},
        "shape": {},
    }
    legend = alt.Legend(symbolOpacity=1, **forms[symbol])
    return alt.Color("colour:N", title=_legend(it), scale=scale, legend=legend)


def dash(it: Sketch) -> Any:
    """A dash for each label of the colour axis, in the legend beside its colour."""
    if it.layout.colour is None:
        return alt.value([1, 0])
    texts = list(it.printed(it.layout.colour).values())
    scale, legend = (
        alt.Scale(domain=texts, range=dashes(texts)),
        alt.Legend(symbolType="stroke", symbolSize=420),
    )
    return alt.StrokeDash("colour:N", title=_legend(it), scale=scale, legend=legend)


def dashed(it: Sketch, chart: Any, mark: str, **look: Any) -> list[Any]:
    """A layer of marks for each label of the colour axis, with its dash.

    For charts whose legend shows shapes: a dash as a channel would be drawn around these, too.
    """
    if it.layout.colour is None:
        return [getattr(chart, f"mark_{mark}")(**look)]
    texts = list(it.printed(it.layout.colour).values())
    return [
        getattr(chart.transform_filter(alt.FieldEqualPredicate(field="colour", equal=text)), f"mark_{mark}")(
            strokeDash=drawn, **look
        )
        for text, drawn in zip(texts, dashes(texts), strict=True)
    ]


def shape(it: Sketch) -> Any:
    """A shape for each label of the colour axis."""
    if it.layout.colour is None:
        return alt.value("circle")
    texts = list(it.printed(it.layout.colour).values())
    return alt.Shape("colour:N", title=_legend(it), scale=alt.Scale(domain=texts, range=shapes(texts)))


def _legend(it: Sketch) -> str:
    return it.names.said(it.layout.colour or "")


def across(it: Sketch, axis: str) -> Any:
    """The horizontal axis of labels in the order of the spec, aslant where they are too long."""
    texts = list(it.printed(axis).values())
    space = (_NARROW if it.layout.facet else _WIDE) / max(1, len(texts))
    aslant = any(width(text, 8) > space - 4 for text in texts)
    drawn = alt.Axis(labelAngle=-30 if aslant else 0, grid=False)
    return alt.X("x:N", title=it.names.said(axis), scale=alt.Scale(domain=texts), sort=texts, axis=drawn)


def upwards(it: Sketch, axis: str) -> Any:
    """The vertical axis of labels in the order of the spec, from the top; numbers grow upwards instead."""
    texts = list(it.printed(axis).values())
    if all(number(label) is not None for label in it.domain(axis)):
        texts.reverse()
    drawn = alt.Axis(labelAngle=0, grid=False)
    return alt.Y("y:N", title=it.names.said(axis), scale=alt.Scale(domain=texts), sort=texts, axis=drawn)


def number_axis(title: str, values: Iterable[float], *, log: bool = False) -> Any:
    """The horizontal axis of numbers: few of them get a tick each."""
    found = sorted(set(values))
    ticks: dict[str, Any] = {"values": found} if 0 < len(found) <= _FEW else {}
    form = "~e" if log and found and (found[0] < 0.01 or found[-1] >= 1e4) else PLAIN
    axis = alt.Axis(format=form, grid=False, labelOverlap=True, **ticks)
    scale = alt.Scale(type="log", nice=False, padding=9) if log else alt.Scale(zero=False, nice=False, padding=9)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def value_axis(title: str, *, log: bool = False, zero: bool = False) -> Any:
    """The vertical axis of what is measured."""
    scale = alt.Scale(type="log") if log else alt.Scale(zero=zero, nice=True)
    return alt.Y("mean:Q", title=title, scale=scale, stack=None, axis=alt.Axis(format=PLAIN, tickCount=5))


def tips(it: Sketch, fields: Mapping[str, str]) -> list[Any]:
    """What a pointer over a mark shows in a browser: the colour's label, then fields such as `mean:Q` by title."""
    found = [alt.Tooltip("colour:N", title=_legend(it))] if it.layout.colour else []
    for field, title in fields.items():
        form = {"format": ".5~g"} if field.endswith(":Q") else {}
        found.append(alt.Tooltip(field, title=title, **form))
    return found


def is_numeric(it: Sketch) -> bool:
    """Whether the x axis is one of numbers: as the figure says, else where all its labels are."""
    if it.layout.x is None or it.layout.x_scale == "category":
        return False
    labels = [label for label in it.domain(it.layout.x) if label]
    return bool(labels) and all(number(label) is not None for label in labels)


_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = 2  # of PNG's kinds of colour
MOST_PIXELS: Final = 40_000_000
"""Of one picture: whoever draws a larger one is not asked to unpack it."""


def size(content: bytes) -> tuple[int, int]:
    """The width and height that a PNG file states; raises ValueError where it is none, or too large."""
    if content[:8] != _SIGNATURE or content[12:16] != b"IHDR":
        raise ValueError("it is no PNG file")
    try:
        width, height = struct.unpack(">II", content[16:24])
    except struct.error:
        raise ValueError("it ends early") from None
    if not 0 < width * height <= MOST_PIXELS:
        raise ValueError(f"it has {width:,} x {height:,} pixels; at most {MOST_PIXELS:,} in all are drawn")
    return width, height


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels [h, w, 3] as a PNG file."""
    height, width, _ = pixels.shape
    # Each row begins with its filter, which is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def address(content: bytes) -> str:
    """A PNG file as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")


def chart(width: int, height: int, *, aspect: bool = True) -> Any:
    """Layers that show the field `picture` in a panel of this size; without `aspect` stretched over all of it."""
    picture = (
        alt.Chart().transform_filter("isValid(datum.picture)").mark_image(aspect=aspect, width=width, height=height)
    )
    return alt.layer(picture.encode(url="picture:N", x=alt.value(width / 2), y=alt.value(height / 2)))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Letters that every machine has or imitates; sizes are in points, since a unit of the drawing is one."""

_TITLE, _PROSE, _SMALL = 10.5, 8.0, 8.0
_WIDTHS: Final = {1: 250, 2: 190, 3: 140, 4: 104}  # of a panel, by how many stand beside one another
_ALTOGETHER: Final = 440  # of the panels of a row of more
_MOST_BESIDE: Final = 4
_SHAPE: Final = 0.66  # height over width


def assembled(it: Sketch, drawing: FigureDrawing, title: str, lines: Sequence[str]) -> dict[str, Any]:
    """The Vega-Lite specification with its data inline; over it `title`, unless that is empty, and lines of prose."""
    plots = [plot for plot in drawing.plots if plot.data]
    across = _across(it, plots)
    own = plots[0].panels if plots else None
    panel = own.side if own else _WIDTHS.get(across) or max(70, _ALTOGETHER // max(1, across))
    parts = [_faceted(it, plot, max(panel, plot.least[0])) for plot in plots]
    datasets = {plot.quantity: list(_values(it, plot)) for plot in plots}
    if not parts:
        chart: Any = _empty()
        whole = _WIDTHS[1]
    else:
        beside = not it.layout.facet
        chart = parts[0] if len(parts) == 1 else alt.concat(*parts, columns=across if beside else 1, spacing=14)
        whole = across * max(panel, *(plot.least[0] for plot in plots)) + 50
    if len(parts) > 1:
        chart = chart.resolve_scale(color="shared", strokeDash="shared", shape="shared")
    heading = _heading(title, lines, max(whole, 280))
    chart = chart.properties(background="#ffffff", padding=5, **({"title": heading} if heading else {}))
    specification: dict[str, Any] = _dressed(chart, _legend_columns(it, drawing, whole)).to_dict()
    # The data comes last: Altair would check every number of it against the schema.
    return {**specification, "datasets": datasets} if parts else specification


def _across(it: Sketch, plots: Sequence[Plot]) -> int:
    """How many panels stand beside one another."""
    if plots and plots[0].panels:
        return len(plots[0].panels.columns)
    if it.layout.column is None:
        return max(1, _beside(len(plots)))
    labels = len(it.domain(it.layout.column))
    return max(1, labels if it.layout.row is not None else _beside(labels))


def _beside(panels: int) -> int:
    """How many of some panels stand in a row, so that the last row is not nearly empty."""
    return panels if panels <= _MOST_BESIDE else 4 if panels % 4 == 0 or panels % 4 == 3 else 3


def _faceted(it: Sketch, plot: Plot, panel: int) -> Any:
    """A plot with its data, its size and a panel for each label of the facet's axes."""
    height = panel if plot.square else max(90, round((plot.tall or _SHAPE) * panel), plot.least[1])
    titled = {"title": alt.TitleParams(plot.title, anchor="start", fontSize=9, offset=6)} if plot.title else {}
    data = alt.NamedData(name=plot.quantity)
    chart = plot.chart(panel, height) if callable(plot.chart) else plot.chart
    chart = chart.properties(width=panel, height=height)
    column, row = it.layout.column, it.layout.row
    header = alt.Header(title=None, labelFontSize=7.5 if plot.panels else 9, labelColor=INK, labelPadding=3)
    if plot.panels:
        beside = alt.Column("column:N", header=header, sort=list(plot.panels.columns))
        below = alt.Row("row:N", header=header, sort=list(plot.panels.rows))
        return chart.facet(column=beside, row=below, data=data, spacing=4)
    if column is None:
        return chart.properties(data=data, **titled)
    sorts = {axis: list(it.headed(axis).values()) for axis in (column, row) if axis is not None}
    if row is None:
        facet = alt.Facet("column:N", header=header, sort=sorts[column])
        made = chart.facet(facet=facet, columns=_across(it, []), data=data, spacing=12)
    else:
        made = chart.facet(
            column=alt.Column("column:N", header=header, sort=sorts[column]),
            row=alt.Row("row:N", header=header, sort=sorts[row]),
            data=data,
            spacing=10,
        )
    made = made.properties(**titled)
    return made.resolve_scale(y="independent") if it.layout.kind == "distribution" else made


def _values(it: Sketch, plot: Plot) -> Iterator[Mapping[str, Value]]:
    """The data as Vega-Lite reads it, with what is printed for the labels that give colour and panel."""
    colours = it.printed(it.layout.colour) if it.layout.colour else {}
    if plot.panels:
        yield from ({"column": column, "row": row} for column in plot.panels.columns for row in plot.panels.rows)
        yield from (datum.values for datum in plot.data)
        return
    columns = it.headed(it.layout.column) if it.layout.column else {}
    rows = it.headed(it.layout.row) if it.layout.row else {}
    # A panel that has nothing yet stands all the same: without a datum it would be left out, and its row shift.
    for column in columns.values():
        yield from ({"column": column, "row": row} for row in rows.values() or [None])
    for datum in plot.data:
        printed: dict[str, Value] = {}
        for field, axis, texts in (
            ("colour", it.layout.colour, colours),
            ("column", it.layout.column, columns),
            ("row", it.layout.row, rows),
        ):
            if axis is not None:
                printed[field] = texts[datum.labels.get(axis, "")]
        yield printed | dict(datum.values)


def _empty() -> Any:
    """What stands where nothing can be drawn; the heading says why."""
    text = alt.Chart(alt.Data(values=[{"text": "nothing to draw"}])).mark_text(color=GREY, fontSize=10)
    return text.encode(text="text:N").properties(width=_WIDTHS[1], height=60)


def _heading(title: str, lines: Sequence[str], space: float) -> Any:
    broken = [line for text in lines for line in _broken(one_line(text), space)]
    shown = list(_broken(one_line(title), space, size=_TITLE * 1.1))
    if not shown and not broken:
        return None
    return alt.TitleParams(
        shown or "", subtitle=broken, anchor="start", fontSize=_TITLE, subtitleFontSize=_PROSE,
        subtitleColor=GREY, subtitleLineHeight=10.5, subtitlePadding=3, offset=8,
    )  # fmt: skip


def _broken(text: str, space: float, *, size: float = _PROSE) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and width(longer, size) > space:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _legend_columns(it: Sketch, drawing: FigureDrawing, space: float) -> int:
    """How many entries of the legend stand beside one another."""
    texts = drawing.series or (list(it.printed(it.layout.colour).values()) if it.layout.colour else [])
    longest = max((width(text, _SMALL) for text in texts), default=0.0)
    return max(1, min(len(texts) or 1, int(space // (longest + 34))))


def _dressed(chart: Any, legend_columns: int) -> alt.TopLevelMixin:
    """The look of print: thin black axes, pale lines behind, letters of 8 to 10 points."""
    line = {"domainColor": INK, "tickColor": INK, "domainWidth": 0.6, "tickWidth": 0.6, "tickSize": 3}
    dressed: alt.TopLevelMixin = (
        chart.configure(font=FONT)
        .configure_axis(
            labelFontSize=_SMALL, titleFontSize=9, titleFontWeight="normal", labelColor=INK,
            titleColor=INK, gridColor=PALE, gridWidth=0.5, titlePadding=4, labelPadding=2, **line,
        )
        .configure_legend(
            orient="bottom", direction="horizontal", columns=legend_columns, labelFontSize=_SMALL, titleFontSize=_SMALL,
            titleFontWeight="bold", labelColor=INK, titleColor=INK, symbolSize=60,
            symbolStrokeWidth=1.4, titleOrient="left", labelLimit=400, columnPadding=12, offset=8,
        )
        .configure_line(strokeWidth=1.4)
        .configure_view(stroke=None)
        .configure_title(color=INK)
    )  # fmt: skip
    return dressed
