"""The candidates of a cell by their scores: each run a dot, the mean a bar, the selected one in its own colour."""

from typing import Any, Final

import altair as alt

from orchestrator.views.cells import CellCandidate, CellView

ASLANT: Final = 12


def chart(cell: CellView) -> dict[str, Any] | None:
    """A Vega-Lite specification with its data; none where no run has a score yet, or nothing competes."""
    runs = [
        {"candidate": _name(one), "score": trial.score, "what": _what(one), "trial": trial.trial}
        for one in cell.candidates
        for trial in one.trials
        if trial.score is not None
    ]
    if not runs or len(cell.candidates) < 2:
        return None
    means = [
        {"candidate": _name(one), "score": one.score, "what": _what(one)}
        for one in cell.candidates
        if one.score is not None
    ]
    order = [_name(one) for one in sorted(cell.candidates, key=lambda one: one.index)]
    # Aslant they are read best; beyond a dozen only upright ones stand beside each other, each second one if need be.
    many = len(order) > ASLANT
    labels = alt.Axis(labelAngle=-90 if many else -30, labelLimit=160, labelOverlap=many)
    x = alt.X("candidate:N", sort=order, title=_axes(cell), axis=labels)
    y = alt.Y("score:Q", title=cell.selection_key, scale=alt.Scale(zero=False), axis=alt.Axis(format="~g"))
    colour = alt.Color(
        "what:N", title=None, legend=alt.Legend(orient="bottom"),
        scale=alt.Scale(domain=["selected", "lost", "not eligible"], range=["#D55E00", "#0072B2", "#8b939c"]),
    )  # fmt: skip
    dots = alt.Chart(alt.NamedData("runs")).mark_circle(size=50, opacity=0.75)
    bars = alt.Chart(alt.NamedData("means")).mark_tick(thickness=2.5, size=26)
    tips = ["candidate:N", alt.Tooltip("score:Q", format=".4f")]
    layered = alt.layer(
        bars.encode(x=x, y=y, color=colour, tooltip=tips),
        dots.encode(x=x, y=y, color=colour, tooltip=["trial:N", *tips]),
    )
    made: dict[str, Any] = layered.properties(height=260, width="container").to_dict()
    return made | {"datasets": {"runs": runs, "means": means}}


def _name(one: CellCandidate) -> str:
    return " · ".join(one.labels.values()) or "untuned"


def _what(one: CellCandidate) -> str:
    return "selected" if one.selected else "lost" if one.status in {"complete", "pending"} else "not eligible"


def _axes(cell: CellView) -> str:
    return " · ".join(dict.fromkeys(axis for one in cell.candidates for axis in one.labels))
