"""Plots put together as one figure of a paper: panels of a size, letters of a size, one legend below."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import altair as alt

from orchestrator.publish.figures import palette
from orchestrator.publish.figures.sketch import FigureDrawing, Plot, Sketch, Value
from orchestrator.publish.labels import one_line, width

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
    header = alt.Header(title=None, labelFontSize=7.5 if plot.panels else 9, labelColor=palette.INK, labelPadding=3)
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
    text = alt.Chart(alt.Data(values=[{"text": "nothing to draw"}])).mark_text(color=palette.GREY, fontSize=10)
    return text.encode(text="text:N").properties(width=_WIDTHS[1], height=60)


def _heading(title: str, lines: Sequence[str], space: float) -> Any:
    broken = [line for text in lines for line in _broken(one_line(text), space)]
    shown = list(_broken(one_line(title), space, size=_TITLE * 1.1))
    if not shown and not broken:
        return None
    return alt.TitleParams(
        shown or "", subtitle=broken, anchor="start", fontSize=_TITLE, subtitleFontSize=_PROSE,
        subtitleColor=palette.GREY, subtitleLineHeight=10.5, subtitlePadding=3, offset=8,
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
    line = {"domainColor": palette.INK, "tickColor": palette.INK, "domainWidth": 0.6, "tickWidth": 0.6, "tickSize": 3}
    dressed: alt.TopLevelMixin = (
        chart.configure(font=FONT)
        .configure_axis(
            labelFontSize=_SMALL, titleFontSize=9, titleFontWeight="normal", labelColor=palette.INK,
            titleColor=palette.INK, gridColor=palette.PALE, gridWidth=0.5, titlePadding=4, labelPadding=2, **line,
        )
        .configure_legend(
            orient="bottom", direction="horizontal", columns=legend_columns, labelFontSize=_SMALL, titleFontSize=_SMALL,
            titleFontWeight="bold", labelColor=palette.INK, titleColor=palette.INK, symbolSize=60,
            symbolStrokeWidth=1.4, titleOrient="left", labelLimit=400, columnPadding=12, offset=8,
        )
        .configure_line(strokeWidth=1.4)
        .configure_view(stroke=None)
        .configure_title(color=palette.INK)
    )  # fmt: skip
    return dressed
