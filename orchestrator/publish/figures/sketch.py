"""What a figure is drawn from: the points of a sweep, their curves, and the arrays and pictures that trainings keep."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.aggregate import Better, CandidateOutcome, by_cell, selection, statistic, summary_of
from orchestrator.publish.labels import Names
from orchestrator.publish.tables.table_data import SETTLED
from orchestrator.spec.axes import applies
from orchestrator.spec.layouts import FigureSpec
from orchestrator.views.runs import CellSummary, Labels, Statistic, SweepOutcomes, TrialOutcome
from workers.catalog import Catalog
from workers.contract import Select


@dataclass(frozen=True, slots=True)
class FigurePoint:
    """One place of a figure: what competed there, and what was selected."""

    labels: Labels  # of the compare axes and of the tune axes that the figure names
    summary: CellSummary
    trials: tuple[TrialOutcome, ...]  # of the selected candidate, in the order of the repeats

    @property
    def settled(self) -> bool:
        """Whether nothing more comes unless it is retried."""
        return self.summary.status in SETTLED


def points(outcomes: SweepOutcomes, layout: FigureSpec, better: Better) -> list[FigurePoint]:
    """Every point in the order of the cells and of their candidates, those without a selected candidate too."""
    compared = {axis for cell in outcomes.cells for axis in cell.labels}
    tuned = [axis for axis in layout.axes if axis not in compared]
    key = selection(outcomes.spec).key
    candidates = by_cell(outcomes)
    trials: dict[tuple[int, int], list[TrialOutcome]] = defaultdict(list)
    for trial in outcomes.trials:
        trials[trial.cell, trial.candidate].append(trial)
    figure_points = []
    for cell in outcomes.cells:
        if not applies(layout.when, cell.labels):
            continue
        for labels, competing in _groups(candidates[cell.index], tuned):
            summary = summary_of(cell.index, competing, key, better)
            chosen = () if summary.candidate is None else trials[cell.index, summary.candidate]
            figure_points.append(FigurePoint({**cell.labels, **labels}, summary, tuple(chosen)))
    return figure_points


def _groups(
    candidates: Sequence[CandidateOutcome], tuned: Sequence[str]
) -> Iterator[tuple[Labels, list[CandidateOutcome]]]:
    """The candidates of a cell that share their labels on the axes `tuned`: all of them where none is drawn."""
    grouped: dict[tuple[str | None, ...], list[CandidateOutcome]] = defaultdict(list)
    for one in candidates:
        grouped[tuple(one.labels.get(axis) for axis in tuned)].append(one)
    for labels, competing in grouped.items():
        yield {axis: label for axis, label in zip(tuned, labels, strict=True) if label is not None}, competing


Value = str | int | float | None
Arrays = Mapping[str, NDArray[Any]]
CurvePoints = Sequence[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where curves and files come from; asked only for the trials that a figure draws."""

    curves: Callable[[Sequence[int], Collection[str]], Mapping[int, Mapping[str, CurvePoints]]]
    """The curves of some keys, by trial."""
    arrays: Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
    """The arrays of a data file by trial, and for each trial without them why that is."""
    pictures: Callable[[Sequence[int], str], tuple[Mapping[int, bytes], Mapping[int, str]]] = lambda *_: ({}, {})
    """The same of sheets of pictures, PNG files."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """One figure of one sweep, ready to be drawn."""

    name: str
    outcomes: SweepOutcomes
    layout: FigureSpec
    parts: Catalog
    names: Names
    select: Select
    points: Sequence[FigurePoint]
    sources: Sources
    aged: str = ""  # which numbers are of older versions

    @property
    def drawn(self) -> list[FigurePoint]:
        """The points that have a selected candidate."""
        return [point for point in self.points if point.summary.candidate is not None]

    def domain(self, axis: str) -> list[str]:
        """The labels of an axis in the order of the spec, "" where it does not apply; those of missing points too."""
        return list(dict.fromkeys(point.labels.get(axis, "") for point in self.points))

    def printed(self, axis: str) -> dict[str, str]:
        """What is printed for each label of an axis; labels that would look alike keep their own spelling."""
        texts = {label: self.names.label(axis, label) for label in self.domain(axis)}
        seen = list(texts.values())
        return {label: text if seen.count(text) == 1 else label or text for label, text in texts.items()}

    def headed(self, axis: str) -> dict[str, str]:
        """The same as headings of panels, where a bare number needs the name of its axis."""
        texts = self.printed(axis)
        return {
            label: text if text != label else self.names.point((axis,), (label,))[0] for label, text in texts.items()
        }


@dataclass(frozen=True, slots=True)
class Datum:
    """One row of the data behind a figure."""

    labels: Labels  # by axis, as the spec writes them
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class PanelGrid:
    """What a plot divides itself into, where that is not by the labels of the facet's axes."""

    columns: Sequence[str]
    rows: Sequence[str]
    side: int
    """Of each, in points."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One quantity over its axes; a figure of several has one plot each."""

    quantity: str
    chart: Any
    """Layers without data and size, or what gives them for a panel's width and height; their fields are those of the
    data, and `colour`, `column` and `row`."""
    data: Sequence[Datum]
    title: str = ""  # over its panels
    square: bool = False
    tall: float = 0.0  # the height of a panel over its width, where the data gives it
    unlisted: Sequence[str] = ()  # fields of the data that are no values: they stay out of the CSV file
    least: tuple[int, int] = (0, 0)  # the smallest width and height of a panel, in points
    panels: PanelGrid | None = None  # of which each datum names its `column` and `row`


@dataclass(frozen=True, slots=True)
class FigureDrawing:
    """What a kind gives: its plots, what they show in words, and what they leave out."""

    plots: Sequence[Plot]
    said: str
    notes: Sequence[str] = ()
    series: Sequence[str] = ()  # the entries of the legend, where they are not the labels of the colour axis


Read = TypeVar("Read")
Held = TypeVar("Held")


@dataclass(frozen=True, slots=True)
class Pooled(Generic[Read]):
    """What the files of each point hold, one a repeat, and a note on those that are missing."""

    found: Sequence[tuple[FigurePoint, Sequence[Read]]]
    notes: Sequence[str]


def read(it: Sketch, convert: Callable[[Arrays], Read], *, first: bool = False) -> Pooled[Read]:
    """The files of the selected candidates, as `convert` gives them; with `first`, of one repeat a point."""
    return _pooled(it, it.sources.arrays, ".npz", lambda _, arrays: convert(arrays), first=first)


def pictures(it: Sketch, convert: Callable[[int, bytes], Read]) -> Pooled[Read]:
    """The sheets of the selected candidates, of one repeat a point; `convert` takes the trial and a PNG file."""
    return _pooled(it, it.sources.pictures, ".png", convert, first=True)


def _pooled(
    it: Sketch,
    source: Callable[[Sequence[int], str], tuple[Mapping[int, Held], Mapping[int, str]]],
    suffix: str,
    convert: Callable[[int, Held], Read],
    *,
    first: bool,
) -> Pooled[Read]:
    data = it.layout.data or ""
    wanted = [[trial.trial for trial in point.trials] for point in it.drawn]
    files, missing = source([trial for trials in wanted for trial in trials], data)
    troubles = dict(missing)
    held: dict[int, Read] = {}
    for trial, file in files.items():
        try:
            held[trial] = convert(trial, file)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            troubles[trial] = f"{data}{suffix} of trial {trial} is not as it should be: {reason}"
    pooled = []
    for point, trials in zip(it.drawn, wanted, strict=True):
        kept = [held[trial] for trial in trials if trial in held]
        if kept:
            pooled.append((point, kept[:1] if first else kept))
    return Pooled(pooled, _notes(list(troubles.values())))


def _notes(troubles: Sequence[str]) -> list[str]:
    if not troubles:
        return []
    count = "A data file is" if len(troubles) == 1 else f"{len(troubles)} data files are"
    return [f"{count} not drawn: {troubles[0]}{'' if len(troubles) == 1 else ', for one'}."]


def figure_of(it: Sketch) -> str:
    """The figure whose data it is: `norms` of `norms-train`."""
    return (it.layout.data or "").partition("-")[0]


def split_of(it: Sketch) -> str:
    """Of which images the data is, in words: of the test split unless the file's name says another."""
    said = (it.layout.data or "").split("-")[1:]
    return "training" if "train" in said else "validation" if "validation" in said else "test"


def vector(arrays: Arrays, name: str, length: int | None = None) -> NDArray[np.float64]:
    """An array of numbers in one dimension; raises KeyError where it is absent, ValueError where it is another."""
    found = np.asarray(arrays[name], dtype=np.float64)
    if found.ndim != 1 or (length is not None and len(found) != length):
        raise ValueError(f"{name} has the shape {[*found.shape]}")
    if not bool(np.isfinite(found).all()):
        raise ValueError(f"{name} holds what is no number")
    return found


def scalar(arrays: Arrays, name: str) -> float:
    """A number; raises KeyError, ValueError."""
    return float(np.asarray(arrays[name], dtype=np.float64).reshape(()))


def means(repeats: Sequence[NDArray[np.float64]]) -> list[Statistic]:
    """The statistic of each place of some arrays [n] over repeats, as far as all of them go."""
    shared = min(len(one) for one in repeats)
    return [statistic([float(one[at]) for one in repeats]) for at in range(shared)]


Seen = TypeVar("Seen")


class Stage(NamedTuple):
    """A stage, as the recipe counts."""

    at: int
    epochs: bool

    @property
    def key(self) -> str:
        """Its name in the data behind a figure, which no other stage has."""
        return f"{self._unit}_{self.at}"

    @property
    def title(self) -> str:
        """Over its panels."""
        return f"After {self.at:,} {self._unit}{'' if self.at == 1 else 's'}" if self.at else "Before training"

    @property
    def _unit(self) -> str:
        return "epoch" if self.epochs else "iteration"


def read_stages(arrays: Arrays, convert: Callable[[Arrays, int], Seen]) -> Mapping[Stage, Seen]:
    """What `convert` makes of each stage, which it is told by its place in the file."""
    steps = vector(arrays, "step")
    stages = vector(arrays, "at", len(steps))
    epochs = bool((steps != stages).any())
    return {Stage(int(at), epochs and at > 0): convert(arrays, place) for place, at in enumerate(stages)}


def drawn(it: Sketch, seen: Sequence[Mapping[Stage, object]]) -> tuple[list[Stage], list[str]]:
    """The stages of any of several files, the earliest first, of those that the figure asks for; a note on the rest."""
    found = sorted({stage for one in seen for stage in one})
    wanted = it.layout.stages
    if wanted is None:
        return found, []
    known = {stage.at for stage in found}
    absent = [f"{at:,}" for at in wanted if at not in known] if seen else []
    notes = [f"No training looked at stage {', '.join(absent)}."] if absent else []
    return [stage for stage in found if stage.at in wanted], notes


Points = Sequence[tuple[float, float | None]]
"""(x, value) in the order of x; none where the value is not a number."""
Band = list[tuple[float, float, float]]
MOST_GRID: Final = 2_000
"""Places at which runs are averaged."""


def smoothed(points: Points, weight: float) -> list[tuple[float, float | None]]:
    """The exponential moving average with this weight of what was, from 0 (as it is) to below 1, and debiased.

    Debiased: divided by the weights that were given so far, so that the first values do not lean towards zero. A value
    that is not a number stays one and moves nothing.
    """
    if not weight:
        return list(points)
    average = given = 0.0
    averages: list[tuple[float, float | None]] = []
    for x, value in points:
        if value is None or not math.isfinite(value):
            averages.append((x, None))
            continue
        average = weight * average + (1 - weight) * value
        given = weight * given + (1 - weight)
        averages.append((x, average / given))
    return averages


def averaged(runs: Sequence[Points]) -> tuple[list[tuple[float, float | None]], Band]:
    """The mean over runs and the band of one sample deviation, at each x over those runs that have come so far.

    Between two points of a run it is on the line between them: runs do not report at the same moments.
    """
    known = [_finite(points) for points in runs]
    known = [(xs, ys) for xs, ys in known if len(xs)]
    if not known:
        return [], []
    if len(runs) == 1:
        return list(runs[0]), []
    grid = np.unique(np.concatenate([xs for xs, _ in known]))
    if len(grid) > MOST_GRID:
        grid = grid[np.linspace(0, len(grid) - 1, MOST_GRID).round().astype(int)]
    values = np.array([np.interp(grid, xs, ys, left=np.nan, right=np.nan) for xs, ys in known])
    number = np.isfinite(values).sum(axis=0)
    sums = np.nansum(values, axis=0)
    mean = sums / number
    deviation = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / np.maximum(1, number - 1))
    line: list[tuple[float, float | None]] = [(float(x), float(y)) for x, y in zip(grid, mean, strict=True)]
    low, high, several = mean - deviation, mean + deviation, number > 1
    edges = zip(grid[several], low[several], high[several], strict=True)
    return line, [(float(x), float(below), float(above)) for x, below, above in edges]


def thinned(points: Points, most: int) -> list[tuple[float, float | None]]:
    """At most `most` (4 or more) of the points: the first, the last, and of each stretch between its extremes.

    A gap stays a gap: where a stretch has a value that is not a number, the first of these stands for its greatest.
    """
    if len(points) <= most:
        return list(points)
    kept = {0, len(points) - 1}
    for stretch in np.array_split(np.arange(1, len(points) - 1), max(1, (most - 2) // 2)):
        finite = [at for at in stretch if _is_number(points[at][1])]
        gap = next((at for at in stretch if not _is_number(points[at][1])), None)
        if finite:
            kept.add(int(min(finite, key=lambda at: points[at][1] or 0.0)))
            if gap is None:
                kept.add(int(max(finite, key=lambda at: points[at][1] or 0.0)))
        if gap is not None:
            kept.add(int(gap))
    return [points[at] for at in sorted(kept)]


def thinned_band(band: Band, most: int) -> Band:
    """At most `most` places of a band, evenly spread, with the first and the last."""
    if len(band) <= most:
        return band
    return [band[at] for at in np.linspace(0, len(band) - 1, most).round().astype(int)]


def _finite(points: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [(x, value) for x, value in points if value is not None and math.isfinite(value)]
    return np.array([x for x, _ in pairs], dtype=np.float64), np.array([value for _, value in pairs], dtype=np.float64)


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
