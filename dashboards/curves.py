"""The page of curves beside each other, and what of them stands in words where no script draws them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from dashboards import pages
from dashboards.rendering import render
from orchestrator.views.trials import Against, CurveLine, CurveLines

SMOOTHINGS: Final = (0.0, 0.3, 0.6, 0.8, 0.9, 0.97)
"""What the page offers; any other weight may stand in the address."""


class Wanted(Protocol):
    """What of a question the page's form repeats."""

    @property
    def trials(self) -> Any:
        """The trials that were asked for."""

    @property
    def sweep(self) -> int | None:
        """Or the sweep."""

    @property
    def cells(self) -> Any:
        """Of which these cells."""

    @property
    def by(self) -> str:
        """What a line stands for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line in words."""

    trace: CurveLine
    last_x: float | None
    last: float | None
    least: float | None
    greatest: float | None


def rows(found: CurveLines) -> list[Row]:
    """Where each line ends, and its extremes."""
    return [_row(trace) for trace in found.traces]


def _row(trace: CurveLine) -> Row:
    values = [(x, y) for x, y in trace.points if y is not None and math.isfinite(y)]
    if not values:
        return Row(trace, None, None, None, None)
    heights = [y for _, y in values]
    return Row(trace, values[-1][0], values[-1][1], min(heights), max(heights))


def curves_page(
    wanted: Wanted,
    found: CurveLines,
    figure: Mapping[str, Any],
    *,
    y: Literal["linear", "log"],
    sweep_name: str | None,
    now: datetime | None = None,
) -> str:
    """Lines of trials, candidates or cells, and the form that chooses what is drawn."""
    kept = {"trials": ",".join(map(str, wanted.trials)), "sweep": str(wanted.sweep or "")}
    kept["cells"] = ",".join(map(str, wanted.cells or ()))
    active = any(trace.running for trace in found.traces)
    against: tuple[tuple[Against, str], ...] = (("step", "steps"), ("seconds", "time trained"))
    return render(
        "curves.html", now, found=found, rows=rows(found), figure=pages.embedded(figure), grammar=pages.grammar(figure),
        kept={name: value for name, value in kept.items() if value}, by=wanted.by, y=y, against=against,
        smoothings=sorted({*SMOOTHINGS, found.smoothing}), sweep=wanted.sweep, sweep_name=sweep_name,
        active=active, refresh=pages.SECONDS["active"] if active else None,
    )  # fmt: skip
