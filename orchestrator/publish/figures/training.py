"""The curves of one training as small multiples: a Vega-Lite specification for its page."""

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from orchestrator.publish.labels import metric_title
from orchestrator.views.trials import Curve
from workers.catalog import Catalog

_FIRST: Final = ("train/loss", "train/regularizer", "train/lr", "train/norm_mean", "train/norm_var")
_TITLES: Final = {
    "train/loss": "Loss", "train/regularizer": "Regularizer (unweighted)", "train/lr": "Learning rate",
    "train/norm_mean": "Norm mean (batch)", "train/norm_var": "Norm variance (batch)",
    "train/s_mu": "Mean singular value (batch)", "train/eta": "Weight of the regularizer",
    "train/cos_ap": "cos(a, p) (batch)", "train/cos_an": "cos(a, n) (batch)",
}  # fmt: skip
_WIDTH, _HEIGHT, _COLUMNS = 250, 140, 3


def curves(found: Sequence[Curve], title: str, parts: Catalog | None = None) -> dict[str, Any]:
    """Small multiples, one a curve: what training reports first, then what was evaluated; all share the steps."""
    shown = sorted((curve for curve in found if curve.points), key=lambda curve: _rank(curve.key))
    if not shown:
        return _specification(alt.Chart(alt.Data(values=[])).mark_point().properties(title=title))
    steps = [step for curve in shown for step, _ in curve.points]
    axis = alt.X("step:Q", title="step", scale=alt.Scale(domain=[min(steps), max(steps)], nice=False))
    multiples = [_multiple(curve, axis, parts) for curve in shown]
    together = alt.concat(*multiples, columns=_COLUMNS, spacing=24).properties(title=title, background="transparent")
    return _specification(together.configure_view(stroke=None).configure_axis(gridOpacity=0.6, tickCount=5))


def _specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    return specification


def _multiple(curve: Curve, axis: alt.X, parts: Catalog | None) -> alt.Chart:
    # A value that is no number breaks the line there instead of hiding that the training diverged.
    values = [{"step": step, "value": value if _drawable(value) else None} for step, value in curve.points]
    return (
        alt.Chart(alt.Data(values=values), title=curve_title(curve.key, parts), width=_WIDTH, height=_HEIGHT)
        .mark_line(point={"size": 12} if len(values) <= 60 else False, strokeWidth=1.5)
        .encode(
            x=axis,
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format="~g")),
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=curve.key, format=".5g")],
        )
    )


def _drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _rank(key: str) -> tuple[int, str]:
    return (_FIRST.index(key), "") if key in _FIRST else (len(_FIRST), key)


def curve_title(key: str, parts: Catalog | None) -> str:
    """A curve in print: `train/norm_var` -> Norm variance (batch), `test/recall@1` -> R@1 (test)."""
    split, _, metric = key.partition("/")
    return _TITLES.get(key) or f"{metric_title(metric, parts) if parts else metric} ({split})"
