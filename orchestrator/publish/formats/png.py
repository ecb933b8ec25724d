"""PNG: the SVG drawing as pixels, made without a browser."""

import vl_convert

from orchestrator.publish.formats import svg
from orchestrator.publish.sheet import Table

media_type = "image/png"
suffix = ".png"

_SCALE = 2  # pixels a unit of the drawing, for screens of high density and for slides


def render(table: Table) -> bytes:
    """The picture."""
    return vl_convert.svg_to_png(svg.render(table).decode(), scale=_SCALE)
