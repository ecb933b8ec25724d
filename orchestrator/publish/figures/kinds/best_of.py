"""The expected best score of n candidates over n: how a cell depends on its budget (Dodge et al., EMNLP 2019)."""

import altair as alt

from orchestrator.publish.aggregate import direction, optimism
from orchestrator.publish.figures import drawing, style
from orchestrator.publish.figures.kinds.curves import MOST_ALTOGETHER
from orchestrator.publish.figures.sketch import Datum, FigureDrawing, Plot, Sketch


def draw(it: Sketch) -> FigureDrawing:
    """Draws a line per cell: the expected best score over 1 to all candidates that finished in every repeat."""
    metric = it.select.key.partition("/")[2]
    scale = drawing.factor(drawing.unit_of(it, metric))
    cells = {found.cell: found for found in optimism(it.results, direction(it.select.metric, it.parts)).cells}
    most = max(2, MOST_ALTOGETHER // max(1, len(it.drawn)))
    data = [
        Datum(point.labels, {"x": n, "mean": best * scale, "cell": point.summary.cell})
        for point in it.drawn
        for n, best in enumerate(cells[point.summary.cell].expected[:most], 1)
    ]
    title = drawing.title_of(it, metric)
    x = style.number_axis("candidates", [float(datum.values["x"] or 0) for datum in data])
    y = style.value_axis(f"expected best {title}", log=it.layout.y_scale == "log")
    tooltip = style.tips(it, {"x:Q": "candidates", "mean:Q": f"expected best {title}"})
    base = alt.Chart().transform_filter("isValid(datum.mean)")
    base = base.encode(x=x, y=y, color=style.colour(it, symbol="shape"))
    layers = [
        *style.dashed(it, base, "line"),
        base.mark_point(filled=True, opacity=1, size=20).encode(shape=style.shape(it), tooltip=tooltip),
    ]
    caption = (
        "Expected best mean score of so many candidates drawn with replacement from those that finished in every "
        "repeat (Dodge et al., EMNLP 2019), of the score that candidates are selected by."
    )
    return FigureDrawing([Plot(metric, alt.layer(*layers), data)], caption=caption)
