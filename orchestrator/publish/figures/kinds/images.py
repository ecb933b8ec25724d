"""Sheets of pictures that trainings keep: retrievals, or feature maps; a panel a point, of one repeat each."""

from typing import Final, NamedTuple

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Datum, FigureDrawing, Plot, Sketch, Value

MOST_BYTES: Final = 48 * 2**20
"""Of all pictures of a figure, which stand in its every format."""
_POINTS: Final = 0.55  # of the drawing to a pixel of a sheet: its letters have 6 points then

_SHOWN: Final = {
    "panels": "The nearest images of some {split} queries, closest first; frame and word say what is of the query's "
    "class, and the cosine stands beside it",
    "feature_maps": "Maps of the backbone's last layer of some {split} images, those of the greatest mean first, each "
    "drawn to its own greatest value",
}


class Sheet(NamedTuple):
    """A picture of one trial."""

    trial: int
    content: bytes
    width: int
    height: int


def draw(it: Sketch) -> FigureDrawing:
    """One plot, a panel a point."""
    pooled = sketch.pictures(it, lambda trial, content: Sheet(trial, content, *style.size(content)))
    data, left_out, held = [], 0, 0
    sheets = []
    for point, (sheet,) in pooled.found:
        held += len(sheet.content)
        if held > MOST_BYTES:
            left_out += 1
            continue
        sheets.append(sheet)
        values: dict[str, Value] = {
            "trial": sheet.trial,
            "file": f"{it.layout.data}.png",
            "picture": style.address(sheet.content),
        }
        data.append(Datum(point.labels, values))
    name = sketch.figure_of(it)
    shown = _SHOWN.get(name, name).format(split=sketch.split_of(it))
    notes = [f"{left_out} sheets are not drawn: all are more than {MOST_BYTES // 2**20} MiB."] if left_out else []
    width = max((round(_POINTS * one.width) for one in sheets), default=0)
    tall = max((one.height / one.width for one in sheets), default=0.0)
    plot = Plot(name, style.chart, data, tall=tall, least=(width, 0), unlisted=("picture",))
    said = f"{shown}; {drawing.first_repeat(it)}."
    return FigureDrawing([plot], said=said, notes=[*pooled.notes, *notes])
