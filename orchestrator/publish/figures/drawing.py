"""Draws a figure of a sweep: the points, the plots of its kind, and the words around them."""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.aggregate import ages, direction, interval, selection
from orchestrator.publish.figures import sketch, style
from orchestrator.publish.figures.pages import curve_title
from orchestrator.publish.figures.sketch import FigureDrawing, FigurePoint, Sketch, Sources, Value, points
from orchestrator.publish.labels import Names, metric_facts
from orchestrator.publish.tables import words
from orchestrator.spec.layouts import ON_THE_WAY, FigureSpec, Unit
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS, FigureView
from orchestrator.views.runs import Statistic, SweepResults
from workers.catalog import Catalog, unknown

_MANY = 4  # points that a note names

_WHY = {
    "diverged": "Diverged in every candidate, so not drawn",
    "failed": "Failed in some repeat of every candidate, so not drawn",
}

MOST_POINTS: Final = 2_000
"""The number of points of a figure; more could not be distinguished."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure of a sweep, with everything that a file format needs."""

    file_stem: str  # the file name without its suffix: lower-case ASCII letters, digits and hyphens
    specification: dict[str, Any]
    columns: Sequence[str]  # of the data
    rows: Sequence[Sequence[Value]]


def draw(results: SweepResults, name: str, catalog: Catalog, sources: Sources, *, heading: bool = True) -> Figure:
    """Draws the figure `name` of the sweep's spec from the results so far; NotFoundError if there is no such figure.

    Without `heading`, the only words above it are those on missing points.
    """
    figures = results.spec.get("figures") or {}
    if name not in figures:
        raise NotFoundError(unknown("figure", name, figures))
    layout, select = _layout(figures[name]), selection(results.spec)
    found = points(results, layout, direction(select.metric, catalog))
    if len(found) > MOST_POINTS:
        raise ConflictError(
            f"figure '{name}' would have {len(found):,} points; at most {MOST_POINTS:,} are drawn: narrow it by `when`"
        )
    names = Names(catalog, layout.labels, layout.titles)
    it = Sketch(results, layout, catalog, names, select, found, sources)
    kind = importlib.import_module(f"orchestrator.publish.figures.kinds.{layout.kind}")
    drawing: FigureDrawing = kind.draw(it)
    missing = [*_missing(it), *drawing.notes]
    title = (layout.title or "").strip() or results.name
    caption = " ".join(_caption(it, drawing))
    usermeta = {
        "figure": name,
        "sweep": {"id": results.sweep, "name": results.name, "state": results.state},
        "title": title,
        "caption": caption,
        "notes": missing,
        "complete": sum(point.settled for point in found),
        "total": len(found),
    }
    above = (title, [caption, *missing]) if heading else ("", missing)
    specification = {**style.assembled(it, drawing, *above), "usermeta": usermeta}
    stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{results.name}-{results.sweep}-{name}").strip("-").lower()
    return Figure(stem[:100], specification, *_table(drawing))


def _layout(figure: Mapping[str, Any]) -> FigureSpec:
    return FigureSpec.model_validate(figure, extra="ignore")  # keys of another release


def _missing(it: Sketch) -> Iterator[str]:
    """What is missing from the figure; stands above it even without a heading."""
    done = sum(point.settled for point in it.points)
    if not it.points:
        yield f"Nothing to draw yet: the sweep is {it.results.state}."
    elif done < len(it.points):
        yield f"Incomplete: {done} of {len(it.points)} points are finished."
    for status, why in _WHY.items():
        if names := [of_point(it, point) for point in it.points if point.summary.status == status]:
            yield f"{why}: {some(names)}."


def of_point(it: Sketch, point: FigurePoint) -> str:
    """The printed labels of a point of the figure, such as `Proxy-Anchor / SEC`."""
    return " / ".join(it.names.point(list(point.labels), list(point.labels.values()))) or "the only cell"


def some(names: Sequence[str]) -> str:
    """The first few names, and the number of further names."""
    return "; ".join(names) if len(names) <= _MANY else f"{'; '.join(names[:_MANY])} and {len(names) - _MANY} more"


def _caption(it: Sketch, drawing: FigureDrawing) -> list[str]:
    """The sentences that a reader needs to trust the figure, after the spec's own caption."""
    own = (it.layout.caption or "").strip()
    own = own if not own or own[-1] in ".!?" else f"{own}."
    keys = (it.select.key, *it.layout.metrics)
    metrics = [metric_facts(key.rpartition("/")[2], it.parts).name for key in keys]
    aged = words.aged_sentence(ages(it.results, metrics, it.parts), lambda cell: f"cell {cell}")
    counts = {at: point.summary.candidates for at, point in enumerate(it.points)}
    searched = words.budget({at: point.labels for at, point in enumerate(it.points)}, counts, it.names.label)
    return [text for text in (own, drawing.caption, aged, *_selection(it), searched) if text]


def _selection(it: Sketch) -> Iterator[str]:
    """How checkpoints and candidates were selected; a warning first if that was on the test split."""
    competing = any(point.summary.candidates > 1 for point in it.points)
    metric, split = metric_facts(it.select.metric, it.parts).title, it.select.split
    if sketch.figure_of(it) not in ON_THE_WAY:
        yield words.test_split_warning(it.select, competing=competing)
        yield words.chosen_by(it.select, metric, "point", competing=competing)
    elif competing:
        yield words.test_split_warning(it.select, competing=True)
        on = "test" if split == "last" else split
        yield f"Best candidate of each point chosen by mean {metric} on the {on} split."


def _table(drawing: FigureDrawing) -> tuple[list[str], list[list[Value]]]:
    """The data of all plots as rows under columns: the quantity, the labels by axis, then the values, no pictures."""
    axes = list(dict.fromkeys(axis for plot in drawing.plots for datum in plot.data for axis in datum.labels))
    named = dict.fromkeys(field for plot in drawing.plots for datum in plot.data for field in datum.values)
    fields = [field for field in named if field != "picture"]
    rows = [
        [plot.quantity, *(datum.labels.get(axis) for axis in axes), *(datum.values.get(field) for field in fields)]
        for plot in drawing.plots
        for datum in plot.data
    ]
    return ["quantity", *axes, *fields], rows


def title_of(it: Sketch, metric: str) -> str:
    """The printed title of a metric's axis in the figure, such as `R@1 (%)`."""
    split, _, name = metric.rpartition("/")
    percent = unit_of(it, metric) == "percent"
    given = it.names.titles.get(metric)
    if given:
        return f"{given} (%)" if percent else given
    if split == "train":
        return curve_title(metric, it.parts)
    facts = metric_facts(name, it.parts)
    shown = f"{facts.title} ↓" if facts.better == "lower" else facts.title
    details = ", ".join(text for text in (split, "%" if percent else "") if text)
    return f"{shown} ({details})" if details else shown


def unit_of(it: Sketch, metric: str) -> Unit:
    """The unit in which a metric or a curve `split/metric` is drawn: the figure's, or else percent for shares."""
    if it.layout.unit is not None:
        return it.layout.unit
    split, _, name = metric.rpartition("/")
    return "number" if split == "train" or metric_facts(name, it.parts).unit == "number" else "percent"


def factor(unit: Unit) -> float:
    """The factor that converts a fraction to a unit."""
    return 100.0 if unit == "percent" else 1.0


def statistics(it: Sketch, metric: str) -> Iterator[tuple[FigurePoint, Statistic]]:
    """The drawn points of the figure that have a value of the metric, each with the statistic of its repeats."""
    return ((point, found) for point in it.drawn if (found := measured(it, point, metric)) is not None)


def measured(it: Sketch, point: FigurePoint, metric: str) -> Statistic | None:
    """The statistic of a metric at a point of the figure, on the test split and for the selected checkpoint."""
    return point.summary.metrics.get(f"{it.select.checkpoint}/test/{metric}")


def provenance(point: FigurePoint) -> dict[str, Value]:
    """Data columns that show from where a drawn number comes: cell, selected candidate, and averaged trials."""
    tuned = ", ".join(f"{axis}={label}" for axis, label in point.summary.labels.items())
    trials = " ".join(str(trial.trial) for trial in point.trials)
    return {"cell": point.summary.cell, "candidate": tuned, "trials": trials}


def averaged(it: Sketch) -> str:
    """Caption text on averaging: `mean ± standard deviation over 3 seeds (0, 1, 2)`, or `a single run (seed 0)`."""
    if _sizes(it) == [1]:
        return f"a single run ({repeats(it)})"
    what = {"std": "mean ± standard deviation", "interval": "mean with its 95 % interval", "none": "mean"}
    return f"{what[it.layout.error]} over {repeats(it)}"


def _sizes(it: Sketch) -> list[int]:
    """The different numbers of repeats of the drawn points."""
    return sorted({len(point.trials) for point in it.drawn}) or [len({trial.repeat for trial in it.results.trials})]


def repeats(it: Sketch) -> str:
    """Caption text on the repeats of the drawn points: `3 seeds (0, 1, 2)`."""
    sizes = _sizes(it)
    return words.repeats(it.results, sizes[0] if len(sizes) == 1 else "unequal numbers of")


def first_repeat(it: Sketch) -> str:
    """Caption text on the repeat that is drawn if only one can be shown: `seed 0`."""
    return ", ".join(f"{axis} {next(iter(labels))}" for axis, labels in words.repeat_labels(it.results).items())


def values(found: Statistic, error: str, scale: float) -> dict[str, Value]:
    """The data columns `mean`, `low`, `high` and `n` of a statistic; `scale` multiplies the first three."""
    ends = None  # without an error bar, or of a single run
    if error != "none" and found.std is not None:
        ends = interval(found) if error == "interval" else (found.mean - found.std, found.mean + found.std)
    low, high = (None, None) if ends is None else (ends[0] * scale, ends[1] * scale)
    return {"mean": found.mean * scale, "low": low, "high": high, "n": found.n}


def listed(sweep: int, name: str, spec: Mapping[str, Any]) -> list[FigureView]:
    """The figures of a normalized spec, as views with their links."""
    layouts = {figure: _layout(given) for figure, given in (spec.get("figures") or {}).items()}
    return [
        FigureView(
            name=figure, kind=layout.kind, title=(layout.title or "").strip() or name, formats=list(FIGURE_FORMATS),
            url=f"/v1/sweeps/{sweep}/figures/{figure}",
        )
        for figure, layout in layouts.items()
    ]  # fmt: skip
