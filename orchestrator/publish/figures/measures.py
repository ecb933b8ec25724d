"""Metrics of cells as a figure shows them: unit, heading, mean and error over repeats."""

from collections.abc import Iterator

from orchestrator.publish.figures.points import FigurePoint
from orchestrator.publish.figures.sketch import Sketch, Value
from orchestrator.publish.figures.training import curve_title
from orchestrator.publish.labels import metric_better, metric_title, metric_unit
from orchestrator.publish.statistics import interval
from orchestrator.spec.unit import Unit
from orchestrator.views.outcomes import Statistic


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
