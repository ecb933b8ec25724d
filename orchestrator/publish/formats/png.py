"""PNG: the SVG drawing as pixels, made without a browser."""

import math

import vl_convert

from orchestrator.publish.formats import svg
from orchestrator.publish.tables.table_data import Table

media_type = "image/png"
suffix = ".png"

_SCALE = 2.0  # pixels a unit of the drawing, for screens of high density and for slides
_PIXELS = 16e6  # a larger picture gets fewer pixels a unit: a table of 3,200 cells took 40 seconds


def render(table: Table) -> bytes:
    """The picture."""
    drawing = svg.draw(table)
    scale = min(_SCALE, math.sqrt(_PIXELS / (drawing.width * drawing.height)))
    return vl_convert.svg_to_png(drawing.text, scale=scale)
