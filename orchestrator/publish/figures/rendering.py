"""A figure as a file: Vega-Lite JSON, SVG, PNG and PDF drawn without a browser or a network, and its data as CSV."""

import csv
import io
import json
from functools import cache
from typing import Final

import altair as alt
import vl_convert

from orchestrator.publish.figures.drawing import Figure
from orchestrator.publish.formats.csv import guarded
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS, Rendered
from workers.catalog import unknown

_DOTS_PER_INCH: Final = 300
"""The resolution of a PNG; a figure of two columns is 2,000 pixels wide."""

_MEDIA_TYPES: Final = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8; header=present",
}


def render(figure: Figure, format_name: str) -> Rendered:
    """Writes the figure in a file format; the NotFoundError for an unknown format lists the formats."""
    specification = figure.specification
    match format_name:
        case "json":
            content = (json.dumps(specification, ensure_ascii=False, allow_nan=False) + "\n").encode()
        case "svg":
            content = vl_convert.vegalite_to_svg(specification, vl_version=version()).encode()
        case "png":
            content = vl_convert.vegalite_to_png(specification, vl_version=version(), scale=1.0, ppi=_DOTS_PER_INCH)
        case "pdf":
            content = vl_convert.vegalite_to_pdf(specification, vl_version=version())
        case "csv":
            content = _csv(figure)
        case _:
            raise NotFoundError(unknown("figure format", format_name, FIGURE_FORMATS))
    filename = f"{figure.file_stem}.{format_name}"
    return Rendered(content=content, media_type=_MEDIA_TYPES[format_name], filename=filename)


@cache
def version() -> str | None:
    """The version of Vega-Lite that Altair writes, such as 6.4, if vl_convert has it; `None` means its newest."""
    found = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return found if found in vl_convert.get_vegalite_versions() else None


def _csv(figure: Figure) -> bytes:
    written = io.StringIO(newline="")
    out = csv.writer(written)
    out.writerow([guarded(column) for column in figure.columns])
    for row in figure.rows:
        out.writerow(
            ["" if value is None else guarded(value) if isinstance(value, str) else repr(value) for value in row]
        )
    return written.getvalue().encode()


@cache
def bundle() -> str:
    """The JavaScript of Vega, Vega-Lite and Vega-Embed (0.9 MB), which defines `vegaEmbed` in a page."""
    # The stub requires a snippet; the function itself does not.
    return vl_convert.javascript_bundle(vl_version=version())  # type: ignore[call-arg]
