"""A sweep's outcomes to one of its figures: what is selected, what its kind draws of it, and the words over it."""

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from orchestrator.publish.aggregate import direction, selection
from orchestrator.publish.figures import style, wording
from orchestrator.publish.figures.sketch import FigureDrawing, Sketch, Sources, Value, points
from orchestrator.publish.labels import Names
from orchestrator.publish.tables.caption import ages
from orchestrator.spec.layouts import FigureSpec
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS, FigureView
from orchestrator.views.runs import SweepOutcomes
from workers.catalog import Catalog, unknown


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with everything that a format needs."""

    name: str
    sweep: int
    sweep_name: str
    specification: dict[str, Any]
    columns: Sequence[str]  # of the data
    rows: Sequence[Sequence[Value]]

    @property
    def file_stem(self) -> str:
        """The name of a file that holds this figure, without its suffix: ASCII letters, digits, dot and hyphens."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.sweep_name}-{self.sweep}-{self.name}").strip("-").lower()
        return stem[:100]


MOST_POINTS: Final = 2_000
"""Points that a figure can have: nobody tells more of them apart."""


class Kind(Protocol):
    """What a module of `kinds` offers."""

    def draw(self, it: Sketch) -> FigureDrawing:
        """The plots of a figure."""


def draw(outcomes: SweepOutcomes, name: str, catalog: Catalog, sources: Sources, *, heading: bool = True) -> Figure:
    """The figure `name` of the sweep's spec as far as the sweep has come; NotFoundError where there is none.

    Without `heading` no words stand over it, but for those that say what is missing.
    """
    it = sketch(outcomes, name, catalog, sources)
    chosen = cast(Kind, importlib.import_module(f"orchestrator.publish.figures.kinds.{it.layout.kind}"))
    drawing = chosen.draw(it)
    missing = wording.notes(it, drawing)
    caption = wording.caption(it, drawing)
    title, lines = (wording.title(it), [" ".join(caption), *missing]) if heading else ("", missing)
    specification = {**style.assembled(it, drawing, title, lines), "usermeta": _facts(it, caption, missing)}
    columns, rows = _table(drawing)
    return Figure(
        name=name,
        sweep=outcomes.sweep,
        sweep_name=outcomes.name,
        specification=specification,
        columns=columns,
        rows=rows,
    )


def sketch(outcomes: SweepOutcomes, name: str, catalog: Catalog, sources: Sources) -> Sketch:
    """What a figure is drawn from."""
    layout = parse(outcomes.spec, name)
    select = selection(outcomes.spec)
    found = points(outcomes, layout, direction(select.metric, catalog))
    if len(found) > MOST_POINTS:
        raise ConflictError(
            f"figure '{name}' would have {len(found):,} points; at most {MOST_POINTS:,} are drawn: narrow it by `when`"
        )
    names = Names(catalog, layout.labels, layout.titles)
    aged = ages(outcomes, [select.key, *layout.metrics], catalog).said(lambda cell: f"cell {cell}")
    return Sketch(name, outcomes, layout, catalog, names, select, found, sources, aged)


def parse(spec: Mapping[str, Any], name: str) -> FigureSpec:
    """One of the figures of a stored spec, whatever release stored it; NotFoundError names those there are."""
    figures = spec.get("figures") or {}
    if name not in figures:
        raise NotFoundError(unknown("figure", name, figures))
    return _stored(figures[name])


def _stored(figure: Mapping[str, Any]) -> FigureSpec:
    return FigureSpec.model_validate(figure, extra="ignore")  # keys of another release


def listed(sweep: int, name: str, spec: Mapping[str, Any]) -> list[FigureView]:
    """The figures of a normalized spec."""
    found = []
    for figure, given in (spec.get("figures") or {}).items():
        layout = _stored(given)
        address = f"/v1/sweeps/{sweep}/figures/{figure}"
        title = (layout.title or "").strip() or name
        found.append(FigureView(name=figure, kind=layout.kind, title=title, formats=list(FIGURE_FORMATS), url=address))
    return found


def _facts(it: Sketch, caption: Sequence[str], missing: Sequence[str]) -> dict[str, Any]:
    """What a reader of the JSON is told beside the picture."""
    return {
        "figure": it.name,
        "sweep": {"id": it.outcomes.sweep, "name": it.outcomes.name, "state": it.outcomes.state},
        "title": wording.title(it),
        "caption": " ".join(caption),
        "notes": list(missing),
        "complete": sum(point.settled for point in it.points),
        "total": len(it.points),
    }


def _table(drawing: FigureDrawing) -> tuple[list[str], list[list[Value]]]:
    """The data of all plots as rows under columns: the quantity, the labels by axis, then the values."""
    axes = list(dict.fromkeys(axis for plot in drawing.plots for datum in plot.data for axis in datum.labels))
    unlisted = {field for plot in drawing.plots for field in plot.unlisted}
    fields = list(dict.fromkeys(field for plot in drawing.plots for datum in plot.data for field in datum.values))
    fields = [field for field in fields if field not in unlisted]
    rows = [
        [plot.quantity, *(datum.labels.get(axis) for axis in axes), *(datum.values.get(field) for field in fields)]
        for plot in drawing.plots
        for datum in plot.data
    ]
    return ["quantity", *axes, *fields], rows
