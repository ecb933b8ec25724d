"""The channels that kinds share: colour with its dash and shape, and axes of numbers or of labels."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import altair as alt

from orchestrator.publish.figures import palette
from orchestrator.publish.figures.sketch import Sketch
from orchestrator.publish.labels import width

PLAIN: Final = ".6~g"
"""The format of plain numbers; without the digits Vega would write 80 as 8e+1."""

_FEW: Final = 8  # numbers on an axis that each get a tick of their own
_WIDE, _NARROW = 250, 140  # a panel alone, and one beside others (panels.py)


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
        return alt.value(palette.COLOURS[0])
    texts = list(it.printed(it.layout.colour).values())
    scale = alt.Scale(domain=texts, range=palette.colours(texts))
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
        alt.Scale(domain=texts, range=palette.dashes(texts)),
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
        for text, drawn in zip(texts, palette.dashes(texts), strict=True)
    ]


def shape(it: Sketch) -> Any:
    """A shape for each label of the colour axis."""
    if it.layout.colour is None:
        return alt.value("circle")
    texts = list(it.printed(it.layout.colour).values())
    return alt.Shape("colour:N", title=_legend(it), scale=alt.Scale(domain=texts, range=palette.shapes(texts)))


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


def value_axis(title: str, field: str = "mean", *, log: bool = False, zero: bool = False) -> Any:
    """The vertical axis of what is measured."""
    scale = alt.Scale(type="log") if log else alt.Scale(zero=zero, nice=True)
    return alt.Y(f"{field}:Q", title=title, scale=scale, stack=None, axis=alt.Axis(format=PLAIN, tickCount=5))


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
