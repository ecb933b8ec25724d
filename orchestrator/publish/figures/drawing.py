"""From a sweep's results to one of its figures: what is selected, drawn and written."""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from orchestrator.publish.aggregate import direction, interval, selection
from orchestrator.publish.figures import sketch, style
from orchestrator.publish.figures.pages import curve_title
from orchestrator.publish.figures.sketch import FigureDrawing, FigurePoint, Sketch, Sources, Value, points
from orchestrator.publish.labels import Names, metric_better, metric_title, metric_unit
from orchestrator.publish.tables.caption import ages, budget
from orchestrator.spec.axes import Unit
from orchestrator.spec.layouts import ON_THE_WAY, FigureSpec
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import FIGURE_FORMATS, FigureView
from orchestrator.views.runs import Statistic, SweepOutcomes
from workers.catalog import Catalog, unknown


def unit_of(it: Sketch, metric: str) -> Unit:
    """The unit of a metric, or of a curve `split/metric`: percent, unless it is no share or the figure says so."""
    if it.layout.unit is not None:
        return it.layout.unit
    split, _, name = metric.rpartition("/")
    return "number" if split == "train" or metric_unit(name, it.parts) == "number" else "percent"


def title_of(it: Sketch, metric: str) -> str:
    """The heading of an axis of a metric, such as `R@1 (%)`."""
    split, _, name = metric.rpartition("/")
    percent = unit_of(it, metric) == "percent"
    given = it.names.titles.get(metric)
    if given:
        return f"{given} (%)" if percent else given
    if split == "train":
        return curve_title(metric, it.parts)
    shown = metric_title(name, it.parts)
    arrow = " ↓" if metric_better(name, it.parts) == "lower" else ""
    said = ", ".join(one for one in (split, "%" if percent else "") if one)
    return f"{shown}{arrow}" + (f" ({said})" if said else "")


def factor(unit: Unit) -> float:
    """By what a fraction is multiplied to be in a unit."""
    return 100.0 if unit == "percent" else 1.0


def bounds(found: Statistic, error: str) -> tuple[float, float] | None:
    """The ends of an error bar; none where one run tells nothing of it."""
    if error == "none" or found.std is None:
        return None
    return interval(found) if error == "interval" else (found.mean - found.std, found.mean + found.std)


def values(found: Statistic, error: str, scale: float) -> dict[str, Value]:
    """`mean`, `low`, `high` and `n` of a statistic, the first three multiplied by `scale`."""
    ends = bounds(found, error)
    low, high = (None, None) if ends is None else (ends[0] * scale, ends[1] * scale)
    return {"mean": found.mean * scale, "low": low, "high": high, "n": found.n}


def statistics(it: Sketch, metric: str) -> Iterator[tuple[FigurePoint, Statistic]]:
    """The points that are drawn and have a metric, with it."""
    pairs = ((point, measured(it, point, metric)) for point in it.drawn)
    return ((point, statistic) for point, statistic in pairs if statistic is not None)


def measured(it: Sketch, point: FigurePoint, metric: str) -> Statistic | None:
    """A metric of a point: on the test split, by the checkpoint that was selected."""
    return point.summary.metrics.get(f"{it.select.checkpoint}/test/{metric}")


def provenance(point: FigurePoint) -> dict[str, Value]:
    """Where a number comes from: the cell, its selected candidate and the trials that it is a mean over."""
    tuned = ", ".join(f"{axis}={label}" for axis, label in point.summary.labels.items())
    trials = " ".join(str(trial.trial) for trial in point.trials)
    return {"cell": point.summary.cell, "candidate": tuned, "trials": trials}


_MANY = 4  # points that a note names

_WHY = {
    "diverged": "Diverged in every candidate, so not drawn",
    "failed": "Failed in some repeat of every candidate, so not drawn",
}


def figure_title(it: Sketch) -> str:
    """The spec's title, or the sweep's name."""
    return (it.layout.title or "").strip() or it.outcomes.name


def figure_caption(it: Sketch, drawing: FigureDrawing) -> list[str]:
    """What a reader needs to trust the figure, a sentence or two an entry; the spec's own caption comes first."""
    own = (it.layout.caption or "").strip()
    own = own if not own or own[-1] in ".!?" else f"{own}."
    return [one for one in (own, drawing.said, it.aged, _loud(it), _selected(it), _budget(it)) if one]


def notes(it: Sketch, drawing: FigureDrawing) -> list[str]:
    """What is missing from the figure; these stand over it even where its caption does not."""
    return [one for one in (partial(it), *_not_drawn(it), *drawing.notes) if one]


def partial(it: Sketch) -> str:
    """How far the sweep has come, where it has not come to its end."""
    done = sum(point.settled for point in it.points)
    if not it.points:
        return f"Nothing to draw yet: the sweep is {it.outcomes.state}."
    return "" if done == len(it.points) else f"Incomplete: {done} of {len(it.points)} points are finished."


def averaged(it: Sketch) -> str:
    """`mean ± standard deviation over 3 seeds (0, 1, 2)`, or `a single run (seed 0)`."""
    if _sizes(it) == [1]:
        return f"a single run ({repeats(it)})"
    what = {"std": "mean ± standard deviation", "interval": "mean with its 95 % interval", "none": "mean"}
    return f"{what[it.layout.error]} over {repeats(it)}"


def repeats(it: Sketch) -> str:
    """`3 seeds (0, 1, 2)`: the labels of the repeat axes, or the recipe's seed where nothing is repeated."""
    labels = _repeat_labels(it)
    if not labels:
        return first_repeat(it)
    noun = next(iter(labels)) if len(labels) == 1 else "repeat"
    values = "; ".join(", ".join(shown) for shown in labels.values())
    sizes = _sizes(it)
    if sizes == [1]:
        return f"{noun} {values}"
    return f"{sizes[0] if len(sizes) == 1 else 'unequal numbers of'} {noun}s ({values})"


def first_repeat(it: Sketch) -> str:
    """`seed 0`: the repeat that stands for all where only one can be shown."""
    labels = _repeat_labels(it)
    if not labels:
        return f"seed {(it.outcomes.spec.get('recipe') or {}).get('seed', 0)}"
    return ", ".join(f"{axis} {next(iter(shown))}" for axis, shown in labels.items())


def _repeat_labels(it: Sketch) -> dict[str, dict[str, None]]:
    """The labels of each repeat axis, in order."""
    labels: dict[str, dict[str, None]] = {}
    for trial in it.outcomes.trials:
        for axis, label in trial.repeat_labels.items():
            labels.setdefault(axis, {})[label] = None
    return labels


def _sizes(it: Sketch) -> list[int]:
    """How many repeats the points that are drawn are means over."""
    return sorted({len(point.trials) for point in it.drawn}) or [len({one.repeat for one in it.outcomes.trials})]


def of_point(it: Sketch, point: FigurePoint) -> str:
    """The labels of a point in print."""
    return " / ".join(it.names.point(list(point.labels), list(point.labels.values()))) or "the only cell"


def some(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    return "; ".join(names) if len(names) <= _MANY else f"{'; '.join(names[:_MANY])} and {len(names) - _MANY} more"


def _chosen(it: Sketch) -> bool:
    return any(point.summary.candidates > 1 for point in it.points)


def _on_the_way(it: Sketch) -> bool:
    """Whether no checkpoint has a say in what is drawn."""
    return sketch.figure_of(it) in ON_THE_WAY


def _loud(it: Sketch) -> str:
    if it.select.split == "test" and (_chosen(it) or not _on_the_way(it)):
        return "Selected on the TEST split, so the numbers are optimistic."
    if it.select.split == "last" and _chosen(it):
        return "Candidates selected on the TEST split, so the numbers are optimistic."
    return ""


def _selected(it: Sketch) -> str:
    metric = metric_title(it.select.metric, it.parts)
    if _on_the_way(it):
        split = "test" if it.select.split == "last" else it.select.split
        return f"Best candidate of each point chosen by mean {metric} on the {split} split." if _chosen(it) else ""
    if it.select.split == "last":
        by = f"; each point's candidate chosen by mean {metric} on the test split" if _chosen(it) else ""
        return f"Last checkpoint of each training{by}."
    what = "Best checkpoint of each training" + (" and best candidate of each point" if _chosen(it) else "")
    return f"{what} chosen by {metric} on the {it.select.split} split."


def _budget(it: Sketch) -> str:
    cells = {at: point.labels for at, point in enumerate(it.points)}
    counts = {at: point.summary.candidates for at, point in enumerate(it.points)}
    return budget(cells, counts, it.names.label)


def _not_drawn(it: Sketch) -> list[str]:
    found = []
    for status, why in _WHY.items():
        names = [of_point(it, point) for point in it.points if point.summary.status == status]
        if names:
            found.append(f"{why}: {some(names)}.")
    return found


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
    it = sketch_of(outcomes, name, catalog, sources)
    chosen = cast(Kind, importlib.import_module(f"orchestrator.publish.figures.kinds.{it.layout.kind}"))
    drawing = chosen.draw(it)
    missing = notes(it, drawing)
    caption = figure_caption(it, drawing)
    title, lines = (figure_title(it), [" ".join(caption), *missing]) if heading else ("", missing)
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


def sketch_of(outcomes: SweepOutcomes, name: str, catalog: Catalog, sources: Sources) -> Sketch:
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
        "title": figure_title(it),
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
