"""Sheets of pictures that trainings keep: retrievals, or feature maps; one panel per point, of one repeat each."""

from typing import Final

from orchestrator.publish.figures import drawing, sketch, style
from orchestrator.publish.figures.sketch import Datum, FigureDrawing, Plot, Sketch

MOST_BYTES: Final = 48 * 2**20
"""The most bytes of all pictures of a figure, since every format contains them."""
_POINTS: Final = 0.55  # points of the drawing per pixel of a sheet, so that its letters have 6 points

_SHOWN: Final = {
    "panels": "The nearest images of some {split} queries, closest first; frame and word say what is of the query's "
    "class, and the cosine stands beside it",
    "feature_maps": "Maps of the backbone's last layer of some {split} images, those of the greatest mean first, each "
    "drawn to its own greatest value",
}


def draw(it: Sketch) -> FigureDrawing:
    """Draws the picture sheets that trainings kept, with a panel for each point of the figure."""
    files, missing = sketch.pooled(
        it, it.sources.pictures, ".png", lambda trial, content: (trial, content, style.size(content)), first=True
    )
    data, sizes, left_out, held = [], [], 0, 0
    for point, ((trial, content, size),) in files:
        held += len(content)
        if held > MOST_BYTES:
            left_out += 1
            continue
        sizes.append(size)
        picture = style.address(content)
        data.append(Datum(point.labels, {"trial": trial, "file": f"{it.layout.data}.png", "picture": picture}))
    name = sketch.figure_of(it)
    shown = _SHOWN.get(name, name).format(split=sketch.split_of(it))
    notes = [f"{left_out} sheets are not drawn: all are more than {MOST_BYTES // 2**20} MiB."] if left_out else []
    width = max((round(_POINTS * width) for width, _ in sizes), default=0)
    tall = max((height / width for width, height in sizes), default=0.0)
    plot = Plot(name, style.chart, data, tall=tall, least=(width, 0))
    caption = f"{shown}; {drawing.first_repeat(it)}."
    return FigureDrawing([plot], caption=caption, notes=[*missing, *notes])
