"""The data of a figure: the points of a sweep, their curves, and the arrays and pictures that trainings keep."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.publish.aggregate import Better, CandidateResult, by_cell, runs_of, selection, summary_of
from orchestrator.publish.labels import Names
from orchestrator.publish.tables.table_data import SETTLED
from orchestrator.spec.layouts import FigureSpec
from orchestrator.spec.spec import applies
from orchestrator.views.runs import CellSummary, Labels, SweepResults, TrialResult
from workers.catalog import Catalog
from workers.contract import Select


@dataclass(frozen=True, slots=True)
class FigurePoint:
    """A point of a figure: the candidates that compete at its labels, and the trials of the selected candidate."""

    labels: Labels  # of the compare axes and of the tune axes that the figure names
    summary: CellSummary
    trials: tuple[TrialResult, ...]  # of the selected candidate, in the order of the repeats

    @property
    def settled(self) -> bool:
        """Whether the point can change only if trials are retried."""
        return self.summary.status in SETTLED


def points(results: SweepResults, layout: FigureSpec, better: Better) -> list[FigurePoint]:
    """The points of a figure in the order of cells and candidates, including points without a selected candidate."""
    compared = {axis for cell in results.cells for axis in cell.labels}
    tuned = [axis for axis in layout.axes if axis not in compared]
    key = selection(results.spec).key
    candidates = by_cell(results)
    found: list[tuple[Labels, CellSummary]] = []
    for cell in results.cells:
        if not applies(layout.when, cell.labels):
            continue
        groups: dict[tuple[tuple[str, str], ...], list[CandidateResult]] = defaultdict(list)
        for candidate in candidates[cell.index]:
            shared = tuple((axis, candidate.labels[axis]) for axis in tuned if axis in candidate.labels)
            groups[shared].append(candidate)
        for shared, competing in groups.items():
            found.append(({**cell.labels, **dict(shared)}, summary_of(cell.index, competing, key, better)))
    chosen = [None if summary.candidate is None else (summary.cell, summary.candidate) for _, summary in found]
    runs = runs_of(results, {place for place in chosen if place})
    return [
        FigurePoint(labels, summary, tuple(runs[place]) if place else ())
        for (labels, summary), place in zip(found, chosen, strict=True)
    ]


Value = str | int | float | None
Arrays = Mapping[str, NDArray[Any]]
CurvePoints = Sequence[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Functions that read the curves, arrays and pictures that trials have kept."""

    curves: Callable[[Sequence[int], Collection[str]], Mapping[int, Mapping[str, CurvePoints]]]
    """The curves with these keys, by trial."""
    arrays: Callable[[Sequence[int], str], tuple[Mapping[int, Arrays], Mapping[int, str]]]
    """The arrays of a data file by trial, and for each trial without them the reason."""
    pictures: Callable[[Sequence[int], str], tuple[Mapping[int, bytes], Mapping[int, str]]] = lambda *_: ({}, {})
    """The sheets of pictures, PNG files, likewise."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A figure of a sweep before it is drawn: its layout, its points and the sources of its data."""

    results: SweepResults
    layout: FigureSpec
    parts: Catalog
    names: Names
    select: Select
    points: Sequence[FigurePoint]
    sources: Sources

    @property
    def drawn(self) -> list[FigurePoint]:
        """The points of the figure that have a selected candidate."""
        return [point for point in self.points if point.summary.candidate is not None]

    def domain(self, axis: str) -> list[str]:
        """The labels of an axis at the points of the figure, in the order of the spec; "" if it does not apply."""
        return list(dict.fromkeys(point.labels.get(axis, "") for point in self.points))

    def printed(self, axis: str) -> dict[str, str]:
        """The printed text of each label of an axis; labels whose texts would be equal are printed as in the spec."""
        texts = {label: self.names.label(axis, label) for label in self.domain(axis)}
        seen = list(texts.values())
        return {label: text if seen.count(text) == 1 else label or text for label, text in texts.items()}

    def headed(self, axis: str) -> dict[str, str]:
        """The labels of an axis as panel headings; a bare number is preceded by the name of its axis."""
        texts = self.printed(axis)
        return {
            label: text if text != label else self.names.point((axis,), (label,))[0] for label, text in texts.items()
        }


@dataclass(frozen=True, slots=True)
class Datum:
    """A row of the data that a figure draws."""

    labels: Labels  # by axis, as the spec writes them
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class PanelGrid:
    """The headings of a plot's panels, if they are not the labels of facet axes."""

    columns: Sequence[str]
    rows: Sequence[str]
    side: int  # of a panel, in points


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a figure: one quantity over the axes."""

    quantity: str
    chart: Any
    """Layers without data and size, or a function that makes them for a panel's width and height. Their fields are
    those of the data, and `colour`, `column` and `row`."""
    data: Sequence[Datum]
    title: str = ""  # above its panels
    square: bool = False
    tall: float = 0.0  # the height of a panel divided by its width, if the data decides it
    least: tuple[int, int] = (0, 0)  # the smallest width and height of a panel, in points
    panels: PanelGrid | None = None  # each datum names its `column` and `row` of these


@dataclass(frozen=True, slots=True)
class FigureDrawing:
    """The plots of a figure, with a caption and notes on what is left out."""

    plots: Sequence[Plot]
    caption: str
    notes: Sequence[str] = ()
    series: Sequence[str] = ()  # the entries of the legend, if they are not the labels of the colour axis


Read = TypeVar("Read")
Held = TypeVar("Held")


Pooled = tuple[Sequence[tuple[FigurePoint, Sequence[Read]]], Sequence[str]]
"""The data files of each point of a figure, one per repeat, and a note on missing files."""


def read(it: Sketch, convert: Callable[[Arrays], Read], *, first: bool = False) -> Pooled[Read]:
    """Reads and converts the array files of a figure's selected candidates; with `first`, only one repeat per point."""
    return pooled(it, it.sources.arrays, ".npz", lambda _, arrays: convert(arrays), first=first)


def pooled(
    it: Sketch,
    source: Callable[[Sequence[int], str], tuple[Mapping[int, Held], Mapping[int, str]]],
    suffix: str,
    convert: Callable[[int, Held], Read],
    *,
    first: bool,
) -> Pooled[Read]:
    """Reads and converts the kept files of a figure's selected candidates; `convert` takes a trial and its file."""
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
    notes = []
    if troubles:
        count = "A data file is" if len(troubles) == 1 else f"{len(troubles)} data files are"
        more = "" if len(troubles) == 1 else ", for one"
        notes.append(f"{count} not drawn: {next(iter(troubles.values()))}{more}.")
    return pooled, notes


def figure_of(it: Sketch) -> str:
    """The kind of the figure's data file: `norms` for the file `norms-train`."""
    return (it.layout.data or "").partition("-")[0]


def split_of(it: Sketch) -> str:
    """The split of the figure's data file in words: `training`, `validation` or `test`, by the file's name."""
    options = (it.layout.data or "").split("-")[1:]
    return "training" if "train" in options else "validation" if "validation" in options else "test"


def numbers(given: Any, name: str, *shape: int | None) -> NDArray[np.float64]:
    """The array `name` of a data file, if it holds finite numbers in this shape, where `None` is any length.

    Raises ValueError for other values, another shape or an empty array.
    """
    found = np.asarray(given, dtype=np.float64)
    fits = found.ndim == len(shape) and all(at in (None, length) for at, length in zip(shape, found.shape, strict=True))
    if not fits or not found.size or not np.isfinite(found).all():
        expected = ", ".join("n" if length is None else str(length) for length in shape)
        raise ValueError(f"the array `{name}` has the shape {[*found.shape]}, expected finite numbers [{expected}]")
    return found


def vector(arrays: Arrays, name: str, length: int | None = None) -> NDArray[np.float64]:
    """Reads a one-dimensional array of a data file; KeyError if missing, ValueError for a wrong shape or value."""
    return numbers(arrays[name], name, length)


Seen = TypeVar("Seen")


class Stage(NamedTuple):
    """A moment of a training at which it kept data, in epochs or iterations like its recipe."""

    at: int
    epochs: bool

    @property
    def key(self) -> str:
        """The unique name of the stage in the data that a figure draws."""
        return f"{self._unit}_{self.at}"

    @property
    def title(self) -> str:
        """The printed title above the panels of the stage."""
        return f"After {self.at:,} {self._unit}{'' if self.at == 1 else 's'}" if self.at else "Before training"

    @property
    def _unit(self) -> str:
        return "epoch" if self.epochs else "iteration"


def read_stages(arrays: Arrays, convert: Callable[[Arrays, int], Seen]) -> Mapping[Stage, Seen]:
    """Reads the stages of a data file; `convert` takes its arrays and the index of a stage.

    The file of a training that ended before its first stage has none.
    """
    if not arrays["at"].size:
        return {}
    steps = vector(arrays, "step")
    stages = vector(arrays, "at", len(steps))
    epochs = bool((steps != stages).any())
    return {Stage(int(at), epochs and at > 0): convert(arrays, place) for place, at in enumerate(stages)}


def drawn(it: Sketch, seen: Sequence[Mapping[Stage, object]]) -> tuple[list[Stage], list[str]]:
    """The stages that the figure requests and any file has, the earliest first, and a note on missing stages."""
    found = sorted({stage for stages in seen for stage in stages})
    wanted = it.layout.stages
    if wanted is None:
        return found, []
    known = {stage.at for stage in found}
    absent = [f"{at:,}" for at in wanted if at not in known] if seen else []
    notes = [f"No training looked at stage {', '.join(absent)}."] if absent else []
    return [stage for stage in found if stage.at in wanted], notes


Item = TypeVar("Item")

Points = Sequence[tuple[float, float | None]]
"""(x, value) in the order of x; `None` if the value is not a number."""
Band = list[tuple[float, float, float]]
_MOST_GRID: Final = 2_000
"""The most places at which runs are averaged."""


def smoothed(points: Points, weight: float) -> list[tuple[float, float | None]]:
    """The debiased exponential moving average of a curve; `weight` of past values is from 0 (no smoothing) to below 1.

    Debiased means divided by the sum of the weights so far, so that the first values are not drawn towards zero. Values
    that are not numbers stay and have no effect on others.
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
    """The mean curve over several runs and the band of one sample deviation, at each x over the runs that reach it.

    Runs report at different moments, so values between two points of a run are interpolated.
    """
    if len(runs) == 1:
        return list(runs[0]), []
    finite = ([(x, value) for x, value in points if _is_number(value)] for points in runs)
    known = [np.array(points, dtype=np.float64).T for points in finite if points]
    if not known:
        return [], []
    grid = np.unique(np.concatenate([xs for xs, _ in known]))
    if len(grid) > _MOST_GRID:
        grid = grid[np.linspace(0, len(grid) - 1, _MOST_GRID).round().astype(int)]
    values = np.array([np.interp(grid, xs, ys, left=np.nan, right=np.nan) for xs, ys in known])
    mean = np.nanmean(values, axis=0)
    several = np.isfinite(values).sum(axis=0) > 1
    deviation = np.nanstd(values[:, several], axis=0, ddof=1)
    band = grid[several], mean[several] - deviation, mean[several] + deviation
    return [*zip(grid.tolist(), mean.tolist(), strict=True)], [*zip(*(edge.tolist() for edge in band), strict=True)]


def thinned(points: Points, most: int) -> list[tuple[float, float | None]]:
    """Thins a curve to at most `most` (4 or more) points: the first, the last, and the extremes of each stretch.

    A gap remains: in a stretch with values that are not numbers, the first of them replaces the maximum.
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


def evenly(items: Sequence[Item], most: int) -> Sequence[Item]:
    """Picks at most `most` (2 or more) evenly spaced items of a sequence, including the first and the last."""
    if len(items) <= most:
        return items
    return [items[at] for at in np.linspace(0, len(items) - 1, most).round().astype(int)]


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
