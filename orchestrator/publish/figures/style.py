"""The style of figures: colours, channels, pictures, and the arrangement of panels for a paper."""

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.figures.sketch import FigureDrawing, Plot, Sketch, Value
from orchestrator.publish.labels import one_line, width
from orchestrator.spec.fields import finite

# Okabe and Ito's colours without yellow, which is hardly visible on paper.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: Final = ([1, 0], [5, 2], [1.5, 1.5], [7, 2, 1.5, 2], [3, 3], [9, 2], [5, 1.5, 1.5, 1.5, 1.5, 1.5])
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

DIVERGING: Final = (
    "#134b85", "#2f78b3", "#5da2cb", "#9dcae1", "#d2e5ef", "#f2f0eb", "#fce0ba", "#fbbf74", "#e8932f", "#c5690d",
    "#994a07",
)  # fmt: skip
"""From the lowest over zero to the highest value: Vega's blueorange."""

INK: Final = "#1a1a1a"
_GREY: Final = "#5f5f5f"
PALE: Final = "#dedede"

PLAIN: Final = ".6~g"
"""The format of plain numbers; with fewer digits Vega would write 80 as 8e+1."""

_FEW: Final = 8  # with at most so many numbers on an axis, each gets a tick
_WIDE, _NARROW = 250, 140  # a single panel, and one of several

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = 2  # PNG's colour type
MOST_PIXELS: Final = 40_000_000
"""The largest picture that is drawn."""

_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
"""A font that every machine has or imitates; sizes are in points, the unit of the drawing."""

_TITLE, _PROSE, _SMALL = 10.5, 8.0, 8.0
_WIDTHS: Final = {1: 250, 2: 190, 3: 140, 4: 104}  # of a panel, by the number of columns
_ALTOGETHER: Final = 440  # the width of a row of more panels
_MOST_IN_ROW: Final = 4
_SHAPE: Final = 0.66  # height over width


def assembled(it: Sketch, drawing: FigureDrawing, title: str, lines: Sequence[str]) -> dict[str, Any]:
    """The Vega-Lite specification of a figure with inline data, below a title (if not empty) and lines of text."""
    plots = [plot for plot in drawing.plots if plot.data]
    across = _columns(it, plots)
    own = plots[0].panels if plots else None
    panel = own.side if own else _WIDTHS.get(across) or max(70, _ALTOGETHER // max(1, across))
    parts = [_faceted(it, plot, max(panel, plot.least[0])) for plot in plots]
    datasets = {plot.quantity: list(_values(it, plot)) for plot in plots}
    if not parts:
        text = alt.Chart(alt.Data(values=[{"text": "nothing to draw"}])).mark_text(color=_GREY, fontSize=10)
        chart: Any = text.encode(text="text:N").properties(width=_WIDTHS[1], height=60)
        whole = _WIDTHS[1]
    else:
        chart = parts[0]
        whole = across * max(panel, *(plot.least[0] for plot in plots)) + 50
    if len(parts) > 1:
        chart = alt.concat(*parts, columns=1 if it.layout.facet else across, spacing=14)
        chart = chart.resolve_scale(color="shared", strokeDash="shared", shape="shared")
    entries = drawing.series or (list(it.printed(it.layout.colour).values()) if it.layout.colour else [])
    longest = max((width(text, _SMALL) for text in entries), default=0.0)
    legend_columns = max(1, min(len(entries) or 1, int(whole // (longest + 34))))
    heading = _heading(title, lines, max(whole, 280))
    chart = chart.properties(background="#ffffff", padding=5, **({"title": heading} if heading else {}))
    specification: dict[str, Any] = _styled(chart, legend_columns).to_dict()
    # The data is added last, since Altair would check every number of it against the schema.
    return {**specification, "datasets": datasets} if parts else specification


def _columns(it: Sketch, plots: Sequence[Plot]) -> int:
    if plots and plots[0].panels:
        return len(plots[0].panels.columns)
    if it.layout.column is None:
        return max(1, _in_row(len(plots)))
    labels = len(it.domain(it.layout.column))
    return max(1, labels if it.layout.row is not None else _in_row(labels))


def _in_row(panels: int) -> int:
    """The number of panels in a row, so that the last row is not nearly empty."""
    return panels if panels <= _MOST_IN_ROW else 4 if panels % 4 == 0 or panels % 4 == 3 else 3


def across(it: Sketch, axis: str) -> Any:
    """A horizontal Altair axis of an axis's labels in the order of the spec, rotated if they are too long."""
    texts = list(it.printed(axis).values())
    space = (_NARROW if it.layout.facet else _WIDE) / max(1, len(texts))
    rotated = any(width(text, 8) > space - 4 for text in texts)
    drawn = alt.Axis(labelAngle=-30 if rotated else 0, grid=False)
    return alt.X("x:N", title=it.names.axis_name(axis), scale=alt.Scale(domain=texts), sort=texts, axis=drawn)


def _faceted(it: Sketch, plot: Plot, panel: int) -> Any:
    height = panel if plot.square else max(90, round((plot.tall or _SHAPE) * panel), plot.least[1])
    titled = {"title": alt.TitleParams(plot.title, anchor="start", fontSize=9, offset=6)} if plot.title else {}
    data = alt.NamedData(name=plot.quantity)
    chart = plot.chart(panel, height) if callable(plot.chart) else plot.chart
    chart = chart.properties(width=panel, height=height)
    column, row = it.layout.column, it.layout.row
    header = alt.Header(title=None, labelFontSize=7.5 if plot.panels else 9, labelColor=INK, labelPadding=3)
    if plot.panels is None and column is None:
        return chart.properties(data=data, **titled)
    columns = plot.panels.columns if plot.panels else list(it.headed(column or "").values())
    if plot.panels is None and row is None:
        facet = alt.Facet("column:N", header=header, sort=columns)
        made = chart.facet(facet=facet, columns=_columns(it, []), data=data, spacing=12)
    else:
        rows = plot.panels.rows if plot.panels else list(it.headed(row or "").values())
        made = chart.facet(
            column=alt.Column("column:N", header=header, sort=columns),
            row=alt.Row("row:N", header=header, sort=rows),
            data=data,
            spacing=4 if plot.panels else 10,
        )
    if plot.panels:
        return made
    made = made.properties(**titled)
    return made.resolve_scale(y="independent") if it.layout.kind == "distribution" else made


def chart(width: int, height: int, *, aspect: bool = True) -> Any:
    """An Altair chart that shows the image in the field `picture`; without `aspect` it is stretched to the panel."""
    picture = (
        alt.Chart().transform_filter("isValid(datum.picture)").mark_image(aspect=aspect, width=width, height=height)
    )
    return alt.layer(picture.encode(url="picture:N", x=alt.value(width / 2), y=alt.value(height / 2)))


def _values(it: Sketch, plot: Plot) -> Iterator[Mapping[str, Value]]:
    """The data for Vega-Lite, with the printed labels of colour and panel."""
    colours = it.printed(it.layout.colour) if it.layout.colour else {}
    if plot.panels:
        yield from ({"column": column, "row": row} for column in plot.panels.columns for row in plot.panels.rows)
        yield from (datum.values for datum in plot.data)
        return
    columns = it.headed(it.layout.column) if it.layout.column else {}
    rows = it.headed(it.layout.row) if it.layout.row else {}
    # Without a datum, an empty panel would be left out, and its row would shift.
    for column in columns.values():
        yield from ({"column": column, "row": row} for row in rows.values() or [None])
    named = ("colour", it.layout.colour, colours), ("column", it.layout.column, columns), ("row", it.layout.row, rows)
    for datum in plot.data:
        printed = {field: texts[datum.labels.get(axis, "")] for field, axis, texts in named if axis is not None}
        yield {**printed, **datum.values}


def colours(series: Sequence[object]) -> list[str]:
    """A colour for each series; colours repeat after seven."""
    return [COLOURS[at % len(COLOURS)] for at in range(len(series))]


def _heading(title: str, lines: Sequence[str], space: float) -> Any:
    broken = [line for text in lines for line in _broken(one_line(text), space)]
    shown = list(_broken(one_line(title), space, size=_TITLE * 1.1))
    if not shown and not broken:
        return None
    return alt.TitleParams(
        shown or "", subtitle=broken, anchor="start", fontSize=_TITLE, subtitleFontSize=_PROSE,
        subtitleColor=_GREY, subtitleLineHeight=10.5, subtitlePadding=3, offset=8,
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


def size(content: bytes) -> tuple[int, int]:
    """The width and height of a PNG file from its header; ValueError if it is not a PNG file or too large."""
    if content[:8] != _SIGNATURE or content[12:16] != b"IHDR" or len(content) < 24:
        raise ValueError("the picture is not a PNG file, or is truncated")
    width, height = struct.unpack(">II", content[16:24])
    if not 0 < width * height <= MOST_PIXELS:
        raise ValueError(f"the picture has {width:,} x {height:,} pixels; at most {MOST_PIXELS:,} in all are drawn")
    return width, height


def _styled(chart: Any, legend_columns: int) -> alt.TopLevelMixin:
    """The style for print: thin black axes, pale grid lines, letters of 8 to 10 points."""
    line = {"domainColor": INK, "tickColor": INK, "domainWidth": 0.6, "tickWidth": 0.6, "tickSize": 3}
    styled: alt.TopLevelMixin = (
        chart.configure(font=_FONT)
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
    return styled


def colour(it: Sketch, *, symbol: str = "stroke") -> Any:
    """The Altair colour channel by the figure's colour axis, with a legend; a single colour without such an axis."""
    forms: dict[str, dict[str, Any]] = {
        "stroke": {"symbolType": "stroke", "symbolSize": 420},  # long enough for a dash and its gap
        "square": {"symbolType": "square"},
        "shape": {},
    }
    legend = alt.Legend(symbolOpacity=1, **forms[symbol])
    return _by_colour(it, alt.Color, COLOURS[0], colours, legend=legend)


def banded(it: Sketch, base: Any, y: Any, tooltip: list[Any]) -> Any:
    """An Altair layer of a line over the band from `low` to `high`."""
    return alt.layer(
        base.transform_filter("isValid(datum.low)").mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q"),
        base.mark_line().encode(y=y, strokeDash=dash(it), tooltip=tooltip),
    )


def dash(it: Sketch) -> Any:
    """The Altair dash channel by the figure's colour axis, for legends that show dash and colour."""
    legend = alt.Legend(symbolType="stroke", symbolSize=420)
    return _by_colour(it, alt.StrokeDash, [1, 0], dashes, legend=legend)


def shape(it: Sketch) -> Any:
    """The Altair shape channel by the figure's colour axis."""
    return _by_colour(it, alt.Shape, "circle", shapes)


def _by_colour(it: Sketch, channel: Any, only: Any, looks: Callable[[Sequence[object]], list[Any]], **more: Any) -> Any:
    """A channel with a look for each label of the colour axis; without that axis, its `only` value."""
    if it.layout.colour is None:
        return alt.value(only)
    texts = list(it.printed(it.layout.colour).values())
    return channel("colour:N", title=_legend(it), scale=alt.Scale(domain=texts, range=looks(texts)), **more)


def _legend(it: Sketch) -> str:
    return it.names.axis_name(it.layout.colour or "")


def dashes(series: Sequence[object]) -> list[list[float]]:
    """A dash pattern for each series, so that series of equal colour differ."""
    return [[*DASHES[(at + at // len(COLOURS)) % len(DASHES)]] for at in range(len(series))]


def dashed(it: Sketch, chart: Any, mark: str, **pattern: Any) -> list[Any]:
    """Altair layers of marks, one with its dash pattern for each label of the figure's colour axis.

    For charts whose legend shows shapes, around which a dash as a channel would be drawn, too.
    """
    if it.layout.colour is None:
        return [getattr(chart, f"mark_{mark}")(**pattern)]
    texts = list(it.printed(it.layout.colour).values())
    return [
        getattr(chart.transform_filter(alt.FieldEqualPredicate(field="colour", equal=text)), f"mark_{mark}")(
            strokeDash=drawn, **pattern
        )
        for text, drawn in zip(texts, dashes(texts), strict=True)
    ]


def shapes(series: Sequence[object]) -> list[str]:
    """A marker shape for each series, so that series of equal colour differ."""
    return [SHAPES[(at + at // len(COLOURS)) % len(SHAPES)] for at in range(len(series))]


def upwards(it: Sketch, axis: str) -> Any:
    """A vertical Altair axis of an axis's labels in the order of the spec, from the top; numbers increase upwards."""
    texts = list(it.printed(axis).values())
    if all(finite(label) is not None for label in it.domain(axis)):
        texts.reverse()
    drawn = alt.Axis(labelAngle=0, grid=False)
    return alt.Y("y:N", title=it.names.axis_name(axis), scale=alt.Scale(domain=texts), sort=texts, axis=drawn)


def number_axis(title: str, values: Iterable[float], *, log: bool = False) -> Any:
    """A horizontal Altair axis of numbers; each gets a tick if they are few."""
    numbers = sorted(set(values))
    ticks: dict[str, Any] = {"values": numbers} if 0 < len(numbers) <= _FEW else {}
    form = "~e" if log and numbers and (numbers[0] < 0.01 or numbers[-1] >= 1e4) else PLAIN
    axis = alt.Axis(format=form, grid=False, labelOverlap=True, **ticks)
    scale = alt.Scale(type="log", nice=False, padding=9) if log else alt.Scale(zero=False, nice=False, padding=9)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def value_axis(title: str, *, log: bool = False, zero: bool = False) -> Any:
    """The vertical Altair axis of the measured values in the field `mean`."""
    scale = alt.Scale(type="log") if log else alt.Scale(zero=zero, nice=True)
    return alt.Y("mean:Q", title=title, scale=scale, stack=None, axis=alt.Axis(format=PLAIN, tickCount=5))


def tips(it: Sketch, fields: Mapping[str, str]) -> list[Any]:
    """The tooltips of a figure's marks: the colour's label, then fields such as `mean:Q` under their titles."""
    named = {"colour:N": _legend(it), **fields} if it.layout.colour else fields
    forms = {"Q": {"format": ".5~g"}, "N": {}}
    return [alt.Tooltip(field, title=title, **forms[field[-1]]) for field, title in named.items()]


def is_numeric(it: Sketch) -> bool:
    """Whether the figure's x axis is numeric; the default is whether all its labels are numbers."""
    if it.layout.x is None or it.layout.x_scale == "category":
        return False
    labels = [label for label in it.domain(it.layout.x) if label]
    return bool(labels) and all(finite(label) is not None for label in labels)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encodes pixels [h, w, 3] as a PNG file."""
    height, width, _ = pixels.shape
    # Each row begins with the number of its filter, 0 for none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def address(content: bytes) -> str:
    """Encodes a PNG file as a data URL."""
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")
