"""Trials: their lists, plots, frames, curves and pages."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, Field

from orchestrator.publish import frames
from orchestrator.publish.aggregate import by_cell, direction, selection, summary_of
from orchestrator.publish.classes import class_scores, pooled
from orchestrator.publish.figures import pages
from orchestrator.publish.figures.sketch import averaged, evenly, smoothed, thinned
from orchestrator.publish.labels import metric_facts
from orchestrator.publish.verdicts import judge
from orchestrator.record.attempts import Points
from orchestrator.record.listings import RowQuery
from orchestrator.record.store import Store
from orchestrator.views import filters
from orchestrator.views.errors import BusyError, ConflictError, NotFoundError
from orchestrator.views.pages import each
from orchestrator.views.runs import Labels, SweepResults, TrialResult
from orchestrator.views.states import TRIAL_ACTIVE, TrialState
from orchestrator.views.sweeps import Links
from orchestrator.views.trials import (
    Against,
    ClassScores,
    CurveLine,
    CurveLines,
    Listed,
    ListedColumn,
    Listing,
    TrialView,
)
from workers import catalog as catalogs
from workers.catalog import Catalog
from workers.contract import Recipe

_MOST_TRACES: Final = 40
"""Lines of one answer; more could not be distinguished."""
MOST_TRIALS: Final = 400
"""Trials whose curves one answer reads."""

PLAIN: Final = ("loss", "regularizer", "dataset", "backbone", "head")
"""Axes whose labels need no axis name."""
_XY = tuple[float, float | None]

By = Literal["cell", "candidate", "trial"]


_NUMBERS: Final = r"^[0-9]{1,9}(,[0-9]{1,9}){0,199}$"


class LinesQuery(BaseModel):
    """The query for lines: of `trials` or of a `sweep`, and how to group them."""

    trials: str | None = Field(
        default=None, pattern=_NUMBERS, description="Trials; each has a line.", examples=["41,42"]
    )
    sweep: int | None = Field(default=None, ge=1, le=2**31 - 1, description="A sweep, instead of `trials`.")
    cells: str | None = Field(default=None, pattern=_NUMBERS, description="Only these cells of it.", examples=["0,3"])
    by: By = Field(
        default="cell",
        description="A line for each cell's best candidate, each candidate (means over runs), or each trial.",
    )
    x: Against = Field(default="step", description="The horizontal axis: steps, or seconds of training.")
    smoothing: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="Weight of earlier values in a debiased exponential moving average; 0 means no smoothing.",
    )
    points: int = Field(default=400, ge=4, le=2_000, description="The largest number of points of a line.")


class CurvesQuery(LinesQuery):
    """The query for curves: lines of one key."""

    key: str | None = Field(default=None, max_length=200, pattern=r"^[^\x00]*$", description="Such as `train/loss`.")


def _numbers(text: str | None) -> list[int]:
    return [int(number) for number in text.split(",")] if text else []


@dataclass(frozen=True, slots=True)
class _Line:
    sweep: int
    cell: int
    candidate: int
    labels: Mapping[str, str]
    trials: Sequence[TrialResult]


class CurveQueries:
    """Reads curves of trials and aligns them to be drawn together."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def traces(self, query: LinesQuery, wanted: str | None = None) -> CurveLines:
        """The requested curves of a key, by default of the first key with several points.

        Raises NotFoundError for an unknown trial, sweep or cell.
        Raises ConflictError unless there are either trials or a sweep in the query.
        """
        if bool(query.trials) == (query.sweep is not None):
            raise ConflictError("name either `trials` or a `sweep`")
        lines = self._of_trials(_numbers(query.trials)) if query.trials else self._of_sweep(query)
        shown = lines[:_MOST_TRACES]
        ids = [trial.trial for line in shown for trial in line.trials][:MOST_TRIALS]
        keys = self._store.curves.keys(ids)
        preferred = [wanted] if wanted else _default_keys(keys, lines, self._store)
        held = self._store.curves.of_trials(ids, preferred)
        several = (name for name in preferred if any(len(found.get(name, [])) > 1 for found in held.values()))
        key = next(several, preferred[0])  # a single evaluation makes no curve
        curves = {trial: found.get(key, []) for trial, found in held.items()}
        clocks = self._store.curves.clocks(ids) if query.x == "seconds" else {}
        names = _names([line.labels for line in shown])
        over = {trial: _over(points, clocks.get(trial)) for trial, points in curves.items()}
        return CurveLines(
            key=key, x=query.x, smoothing=query.smoothing, keys=keys, left_out=len(lines) - len(shown),
            traces=[_trace(line, name, query, over) for line, name in zip(shown, names, strict=True)],
        )  # fmt: skip

    def chart(self, found: Sequence[CurveLines], *, log: bool = False, bands: bool = True) -> dict[str, Any]:
        """The curves as a Vega-Lite figure, a small multiple for each of several keys."""
        titles = [pages.curve_title(lines.key, self._catalog) for lines in found]
        return pages.lines_charts(found, titles, log=log, bands=bands)

    def _of_trials(self, trials: Sequence[int]) -> list[_Line]:
        lines = []
        for number in dict.fromkeys(trials):
            trial = self._store.trials.get(number)
            result = TrialResult(trial.id, trial.cell, trial.candidate, trial.repeat, {}, trial.state, trial.diverged)
            labels = {"trial": str(number), **trial.labels}
            lines.append(_Line(trial.sweep, trial.cell, trial.candidate, labels, [result]))
        return lines

    def _of_sweep(self, query: LinesQuery) -> list[_Line]:
        assert query.sweep is not None
        selected = _numbers(query.cells)
        results = self._store.trial_results.of(query.sweep, selected or None)
        present = {cell.index for cell in results.cells}
        if missing := [cell for cell in selected if cell not in present]:
            raise NotFoundError(f"no cell {missing[0]} in sweep {query.sweep}")
        if query.by == "cell":
            return list(self._best(results))
        cells = {cell.index: cell.labels for cell in results.cells}
        by_place: dict[tuple[int, ...], list[TrialResult]] = {}
        for trial in results.trials:
            place = (trial.cell, trial.candidate) + ((trial.repeat,) if query.by == "trial" else ())
            by_place.setdefault(place, []).append(trial)
        tuned = {(candidate.cell, candidate.index): candidate.labels for candidate in results.candidates}
        return [
            _Line(
                results.sweep, place[0], place[1],
                {**cells[place[0]], **tuned[place[0], place[1]], **(those[0].repeat_labels if len(place) > 2 else {})},
                those,
            )
            for place, those in sorted(by_place.items())
        ]  # fmt: skip

    def _best(self, results: SweepResults) -> Iterable[_Line]:
        """The selected candidate of each cell, or else the first that has begun."""
        select = selection(results.spec)
        better = direction(select.metric, self._catalog)
        competing = by_cell(results)
        for cell in results.cells:
            candidates = {candidate.index: candidate for candidate in competing[cell.index]}
            chosen = summary_of(cell.index, competing[cell.index], select.key, better).candidate
            if chosen is None:
                begun = [index for index, candidate in candidates.items() if candidate.started]
                chosen = next(iter(begun or candidates), None)
            if chosen is None:
                continue
            labels = {**cell.labels, **candidates[chosen].labels}
            trials = [trial for trial in results.trials_of(cell.index) if trial.candidate == chosen]
            yield _Line(results.sweep, cell.index, chosen, labels, trials)


def _trace(line: _Line, name: str, query: LinesQuery, over: Mapping[int, Sequence[_XY]]) -> CurveLine:
    curves = (over.get(trial.trial) for trial in line.trials)
    runs = [smoothed(points, query.smoothing) for points in curves if points]
    points, band = averaged(runs)
    return CurveLine(
        label=name, sweep=line.sweep, cell=line.cell, candidate=line.candidate,
        trials=[trial.trial for trial in line.trials], runs=len(runs),
        running=any(trial.state in TRIAL_ACTIVE for trial in line.trials),
        points=thinned(points, query.points), band=list(evenly(band, query.points)),
    )  # fmt: skip


def _over(points: Points, clock: Sequence[tuple[int, float]] | None) -> list[_XY]:
    """The points over steps, or over seconds if the clock of a trial (seconds at steps) is given."""
    if clock is None:
        return [(float(step), value) for step, value in points]
    if not clock:
        return []
    xs = np.interp([step for step, _ in points], [step for step, _ in clock], [seconds for _, seconds in clock])
    return [(float(x), value) for x, (_, value) in zip(xs, points, strict=True)]


def _default_keys(keys: Sequence[str], lines: Sequence[_Line], store: Store) -> list[str]:
    """The curves by default: the metric that the sweep selects by, if it is reported, and the loss."""
    preferred: list[str] = []
    if lines:
        select = selection(store.sweeps.get(lines[0].sweep).spec)
        preferred = [f"{'validation' if select.split == 'validation' else 'test'}/{select.metric}", "train/loss"]
    return [key for key in preferred if key in keys] or [*keys[:1]] or ["train/loss"]


def _names(every: Sequence[Labels]) -> list[str]:
    """Short names of lines, from the labels in which they differ."""
    axes = list(dict.fromkeys(axis for labels in every for axis in labels))
    differing = [axis for axis in axes if len({labels.get(axis) for labels in every}) > 1] or axes
    short = {axis: axis.rpartition(".")[2] for axis in differing}
    return [
        " · ".join(label if axis in PLAIN else f"{short[axis]} {label}" for axis, label in labels.items()
                   if axis in short)
        for labels in every
    ]  # fmt: skip


MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"


class FrameQueries:
    """Makes frames of sweeps and trials as Arrow streams; raises NotFoundError before the first part."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def sweeps(self) -> Iterator[bytes]:
        """A frame of every sweep, newest first."""
        return frames.sweeps(each(lambda cursor: self._store.sweeps.page(cursor=cursor, limit=200)[0]))

    def trials(self, sweep: int) -> Iterator[bytes]:
        """A frame of a sweep's trials with labels, metrics, recipe and provenance."""
        return frames.trials(
            self._store.trial_results.of(sweep, trials=False), self._store.trial_results.provenance(sweep)
        )

    def candidates(self, sweep: int) -> Iterator[bytes]:
        """A frame of a sweep's candidates with their means."""
        results = self._store.trial_results.of(sweep)
        return frames.candidates(results, direction(selection(results.spec).metric, self._catalog))

    def curves(self, sweep: int, key: str | None = None) -> Iterator[bytes]:
        """A frame of the curves of a sweep's trials, all curves or those of one key."""
        self._store.sweeps.get(sweep)
        trials = (trial.result.trial for trial in self._store.trial_results.provenance(sweep))
        return frames.curves(
            (trial, [curve for curve in self._store.curves.of(trial) if key in {None, curve.key}]) for trial in trials
        )


_USUAL: Final = ("map@r", "recall@1", "nmi", "f1", "norm_var")
"""Metrics that lists of several sweeps show by default."""
_MOST_USUAL: Final = 6


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """The query for a list: a filter, and trials or candidates."""

    where: str = ""
    of: Listed = "trials"
    sweep: int | None = None

    def rows(self, *names: str, path: str = "sort") -> RowQuery:
        """The query in the form of the store; raises InvalidFilterError."""
        return RowQuery(where=filters.parse(self.where), kind=self.of, sweep=self.sweep, names=names, path=path)


Plot = Literal["scatter", "heat", "slice", "parallel", "importance", "history", "distribution", "norms"]
MOST_SECONDS: Final = 40
"""The time that Optuna may take."""
MOST_COLUMNS: Final = 8
"""The columns of parallel coordinates."""


class ListingQueries:
    """Lists and plots trials and candidates."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def page(
        self,
        query: ListingQuery,
        sort: str,
        columns: Sequence[str] | None,
        cursor: str | None,
        limit: int,
        *,
        count: bool,
        group: str = "",
    ) -> Listing:
        """A page of trials or candidates, and all of them by their label in the column `group`, if it is given.

        Raises InvalidFilterError.
        """
        shown = self.usual(query.sweep) if columns is None else list(dict.fromkeys(columns))
        page = self._store.listings.page(query.rows(), sort, shown, cursor, limit, count=count)
        groups = self._store.listings.groups(query.rows(), group, shown) if group else []
        return page.model_copy(update={"groups": groups})

    def usual(self, sweep: int | None) -> list[str]:
        """The metrics that a list shows by default: those of a sweep's tables, then the usual metrics."""
        known = {column.name for column in self._store.listings.columns(sweep) if column.role == "metric"}
        tables = self._store.listings.tables(sweep) if sweep is not None else ()
        metrics = (metric for table in tables for metric in table.get("metrics", []))
        declared = [metric if isinstance(metric, str) else str(metric.get("metric")) for metric in metrics]
        return [name for name in dict.fromkeys([*declared, *_USUAL]) if name in known][:_MOST_USUAL]

    def plot(self, plot: Plot, query: ListingQuery, x: str, y: str, colour: str) -> dict[str, Any]:
        """A plot as Vega-Lite; raises ConflictError if nothing can be drawn, InvalidFilterError."""
        choice = _Defaults(self._store.listings.columns(query.sweep), query)
        shade, colour, plots = colour or "score", colour or choice.colour, self._store.plots
        number = y or "score"
        match plot:
            case "scatter" | "norms":
                across = x or ("norm_var" if plot == "norms" else choice.number)
                upwards = y or ("recall@1" if plot == "norms" else "score")
                sought = query.rows(across, upwards, colour, path="plot")
                points = plots.points(sought, (across, upwards), colour)
                means = plots.means(sought, (colour,), across, upwards)
                figure = pages.scatter(points, means, across, upwards, colour)
            case "distribution":
                number, colour = x or number, colour if query.sweep else "sweep"
                points = plots.points(query.rows(number, colour, path="plot"), (number,), colour)
                figure = pages.distribution(points, number, colour)
            case "history":
                sought = query.rows(number, colour, "ended", path="plot")
                points = plots.history(sought, number, colour, higher=self._higher(number))
                figure = pages.history(points, number, colour)
            case "parallel":
                axes = choice.tuned[: MOST_COLUMNS - 2]
                numbers = [name for name in dict.fromkeys([x, number]) if name and name not in axes] or ["score"]
                sought = query.rows(*numbers, *axes, colour, path="plot")
                points = plots.points(sought, numbers, colour, axes)
                figure = pages.parallel(points, axes, numbers, colour)
            case "importance":
                figure = self._importance(query, choice.tuned, number)
            case "slice":
                axis = x or choice.axis
                points = plots.means(query.rows(axis, number, colour, path="plot"), (axis, colour), number)
                figure = pages.sliced(points, axis, number, colour)
            case "heat":
                axis, other = x or choice.axis, y or choice.other
                points = plots.means(query.rows(axis, other, shade, path="plot"), (axis, other), shade)
                figure = pages.heat(points, axis, other, shade)
        return figure

    def _importance(self, query: ListingQuery, axes: Sequence[str], number: str) -> dict[str, Any]:
        candidates = ListingQuery(query.where, "candidates", query.sweep)
        points = self._store.plots.points(candidates.rows(number, *axes, path="plot"), [number], labels=axes)
        if len(points.rows) < 4:
            raise ConflictError(f"{len(points.rows)} candidates have `{number}`; importance needs four or more")
        columns = {axis: _typed([row[f"k{at}"] for row in points.rows]) for at, axis in enumerate(axes)}
        problem = {"axes": columns, "numbers": [row["v0"] for row in points.rows], "higher": self._higher(number)}
        of = f"{len(points.rows):,} of {points.total:,}"
        note = f"PED-ANOVA (Optuna) over the means of {of} candidates; it says what goes with it, not what causes it"
        return pages.importance(_importances(problem), number, points.total, note)

    def _higher(self, number: str) -> bool:
        if number in ("score", "seconds"):
            return number == "score"
        return metric_facts(number.rpartition("/")[2], self._catalog).better != "lower"


class _Defaults:
    """The axes and metrics that are drawn by default."""

    def __init__(self, columns: Sequence[ListedColumn], query: ListingQuery) -> None:
        own = [column for column in columns if query.of == "trials" or column.role != "repeat"]
        self.axes = [column.name for column in own if column.role in ("compare", "tune") and column.numeric]
        self.tuned = [column.name for column in own if column.role in ("compare", "tune") and column.labelled]
        metrics = (column.name for column in own if column.role == "metric" and "/" not in column.name)
        self.number = (self.axes or [name for name in metrics if name != "score"] or ["seconds"])[0]
        self._labels = [column.name for column in own if column.labelled]
        compared = (column.name for column in own if column.role == "compare" and column.labelled)
        self.colour = next(compared, "sweep")

    @property
    def axis(self) -> str:
        if not self._labels:
            raise ConflictError("there is no axis to draw over: no trial here has labels")
        return (self.axes or self._labels)[0]

    @property
    def other(self) -> str:
        others = [name for name in self._labels if name != self.axis]
        if not others:
            raise ConflictError("these trials have only one axis; a map needs two")
        return others[0]


def _typed(labels: Sequence[str | None]) -> list[float | str | None]:
    try:
        return [float(label) for label in labels]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return list(labels)


def _importances(problem: Mapping[str, Any]) -> dict[str, float]:
    """Compute importances in a separate process, which a timeout ends; this process does not import Optuna."""
    command = [sys.executable, "-P", "-m", "orchestrator.run.optuna"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module, its input as data
            command, input=json.dumps(problem), capture_output=True, text=True, timeout=MOST_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        message = f"the importance was not computed within {MOST_SECONDS} seconds; try a narrower filter"
        raise BusyError(message) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or ["no reason"]
        raise ConflictError(f"the importance cannot be computed: {last[0][:300]}") from error
    shares: dict[str, float] = json.loads(done.stdout)
    return shares


class TrialQueries:
    """Answers about single trials."""

    def __init__(self, store: Store, catalog: Catalog, links: Links, arrays: judge.ArrayFiles) -> None:
        self._store, self._catalog, self._links, self._arrays = store, catalog, links, arrays

    def get(self, trial: int) -> TrialView:
        """The trial with a number, with all details."""
        found = self._store.trials.get(trial)
        run = self._store.runs.run("trial", found.sweep, trial)
        update = {
            "mlflow_url": self._links.to(self._store.runs.experiment(found.sweep), run) if run else None,
            "outdated": [str(change) for change in catalogs.changes(catalogs.stamp(found.recipe), self._catalog)],
            "collected": self._store.collection.of_trial(trial),
            "annotation": self._store.annotations.of("trial", found.sweep, trial),
        }
        return found.model_copy(update=update)

    def classes(self, trial: int, split: str = "test", *, seeds: bool = False) -> ClassScores:
        """Recall, precision and F1 of each class of a test split; raises NotFoundError if its training kept none.

        `seeds`: of the queries of all finished trials of its candidate, as far as their trainings kept them.
        """
        view, name = self._store.trials.get(trial), judge.file_of(split)
        together = [trial]
        if seeds:
            among = self._store.trial_results.of(view.sweep, [view.cell]).trials_of(view.cell)
            together += [
                other.trial
                for other in among
                if other.candidate == view.candidate and other.trial != trial and other.state is TrialState.FINISHED
            ]
        found, missing = self._arrays(together, name)
        if trial not in found:
            raise NotFoundError(missing[trial])
        try:
            scores, checkpoint = class_scores(pooled([*found.values()])), str(found[trial]["checkpoint"])
        except (KeyError, ValueError, TypeError) as error:
            raise NotFoundError(f"{name}.npz of trial {trial} has no scores by class: {error}") from error
        return ClassScores(trial=trial, trials=sorted(found), split=split, checkpoint=checkpoint, classes=scores)

    def classes_figure(self, found: ClassScores) -> dict[str, Any]:
        """The scores of classes as a Vega-Lite figure."""
        return pages.classes_chart(found)

    def curves_figure(self, trial: int) -> dict[str, Any]:
        """A trial's curves as a Vega-Lite figure, without the usage of its machine."""
        return pages.curves(self._store.curves.of(trial), f"Trial {trial}", self._catalog)

    def usage_figure(self, trial: int) -> dict[str, Any]:
        """CPU, memory and GPU usage over the time trained as a Vega-Lite figure."""
        found, clock = self._store.curves.of_trials([trial], pages.USAGE), self._store.curves.clocks([trial])
        usage = {key: _over(points, clock.get(trial)) for key, points in found.get(trial, {}).items()}
        return pages.usage(usage, f"Usage of trial {trial}")

    def defaults(self, trial: TrialView) -> dict[str, Any] | None:
        """The defaults of a trial's recipe; `None` if one of its parts is unknown now."""
        try:
            return catalogs.defaults_for(Recipe.model_validate(trial.recipe), self._catalog)
        except (LookupError, ValueError):
            return None
