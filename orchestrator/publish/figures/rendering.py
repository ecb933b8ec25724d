"""A figure as a file: Vega-Lite JSON, SVG, PNG and PDF drawn without a browser or a network, and its data as CSV."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple

import altair as alt
import vl_convert

from orchestrator.publish.figures.drawing import Figure
from orchestrator.publish.formats.csv import guarded
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS, Rendered
from workers.catalog import unknown


@cache
def version() -> str | None:
    """The version that vl_convert takes for Altair's, such as 6.4; none: its newest."""
    found = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return found if found in vl_convert.get_vegalite_versions() else None


@cache
def bundle() -> str:
    """The scripts of Vega, Vega-Lite and Vega-Embed as one (0.9 MB), putting `vegaEmbed` into the page's window."""
    # It takes a second, hence the cache. Its stub asks for a snippet; the function itself does not.
    return vl_convert.javascript_bundle(vl_version=version())  # type: ignore[call-arg]


DOTS_PER_INCH: Final = 300
"""Of a PNG; a figure two columns wide has 2,000 pixels then."""


class FigureFormat(NamedTuple):
    """How a figure is written."""

    media_type: str
    suffix: str
    write: Callable[[Figure], bytes]


def _json(figure: Figure) -> bytes:
    return (json.dumps(figure.specification, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _svg(figure: Figure) -> bytes:
    drawn: str = vl_convert.vegalite_to_svg(figure.specification, vl_version=version())
    return drawn.encode()


def _png(figure: Figure) -> bytes:
    drawn: bytes = vl_convert.vegalite_to_png(figure.specification, vl_version=version(), scale=1.0, ppi=DOTS_PER_INCH)
    return drawn


def _pdf(figure: Figure) -> bytes:
    drawn: bytes = vl_convert.vegalite_to_pdf(figure.specification, vl_version=version())
    return drawn


def _csv(figure: Figure) -> bytes:
    written = io.StringIO(newline="")
    out = csv.writer(written)
    out.writerow([guarded(column) for column in figure.columns])
    for row in figure.rows:
        out.writerow(
            ["" if value is None else guarded(value) if isinstance(value, str) else repr(value) for value in row]
        )
    return written.getvalue().encode()


_WRITERS: Final[Mapping[str, FigureFormat]] = {
    "json": FigureFormat("application/json", ".json", _json),
    "svg": FigureFormat("image/svg+xml", ".svg", _svg),
    "png": FigureFormat("image/png", ".png", _png),
    "pdf": FigureFormat("application/pdf", ".pdf", _pdf),
    "csv": FigureFormat("text/csv; charset=utf-8; header=present", ".csv", _csv),
}


def render(figure: Figure, format_name: str) -> Rendered:
    """The figure as a file; NotFoundError names the formats there are."""
    if format_name not in FIGURE_FORMATS:
        raise NotFoundError(unknown("figure format", format_name, FIGURE_FORMATS))
    chosen = _WRITERS[format_name]
    return Rendered(
        content=chosen.write(figure), media_type=chosen.media_type, filename=f"{figure.file_stem}{chosen.suffix}"
    )
