"""Trials: lists, plots and frames of them, their curves and their pages."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.publish import figures, frames
from orchestrator.publish.aggregate import by_cell, direction, selection, summary_of
from orchestrator.publish.figures.sketch import averaged, smoothed, thinned, thinned_band
from orchestrator.publish.labels import metric_better
from orchestrator.record.attempts import Points
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.listings import Sought
from orchestrator.record.store import Store
from orchestrator.views import filters
from orchestrator.views.errors import BusyError, ConflictError, NotFoundError
from orchestrator.views.pages import FigureFile, Page, Rendered
from orchestrator.views.runs import Labels, SweepOutcomes, TrialOutcome
from orchestrator.views.states import TRIAL_ACTIVE
from orchestrator.views.sweeps import Links, SweepSummary
from orchestrator.views.trials import (
    Against,
    Curve,
    CurveLine,
    CurveLines,
    Listed,
    ListedColumn,
    Listing,
    LogView,
    Neighbour,
    TrialSummary,
    TrialView,
)
from workers import catalog as catalogs
from workers.catalog import Catalog

MOST_TRACES: Final = 40
"""Lines of one answer: of more nobody tells them apart."""
MOST_TRIALS: Final = 400
"""Trials whose curves one answer reads."""
DEFAULT_POINTS: Final = 400

PLAIN: Final = ("loss", "regularizer", "dataset", "backbone", "head")
"""Axes whose labels say themselves what they are of."""
XY = tuple[float, float | None]

By = Literal["cell", "candidate", "trial"]


@dataclass(frozen=True, slots=True)
class CurvesAsked:
    """What is asked for: `trials`, or of a `sweep` its cells (all, or some), each `by` its best candidate or finer."""

    trials: Sequence[int] = ()
    sweep: int | None = None
    cells: Sequence[int] | None = None
    by: By = "cell"
    key: str | None = None
    x: Against = "step"
    smoothing: float = 0.0
    points: int = DEFAULT_POINTS


@dataclass(frozen=True, slots=True)
class _Line:
    sweep: int
    cell: int
    candidate: int
    labels: Mapping[str, str]
    trials: Sequence[TrialOutcome]


class CurveQueries:
    """Reads curves and makes them fit to be drawn together."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def traces(self, asked: CurvesAsked) -> CurveLines:
        """What is asked for; NotFoundError where a trial, sweep or cell is not there."""
        lines = self._of_trials(asked.trials) if asked.trials else self._of_sweep(asked)
        shown = lines[:MOST_TRACES]
        ids = [trial.trial for line in shown for trial in line.trials][:MOST_TRIALS]
        keys = self._store.curves.keys(ids)
        wanted = [asked.key] if asked.key else _usual(keys, lines, self._store)
        held = self._store.curves.of_trials(ids, wanted)
        several = (one for one in wanted if any(len(found.get(one, [])) > 1 for found in held.values()))
        key = next(several, wanted[0])  # of one evaluation each there is no curve
        curves = {trial: found.get(key, []) for trial, found in held.items()}
        clocks = self._store.curves.clocks(ids) if asked.x == "seconds" else {}
        names = _names([line.labels for line in shown])
        over = {trial: _over(points, clocks.get(trial)) for trial, points in curves.items()}
        return CurveLines(
            key=key, x=asked.x, smoothing=asked.smoothing, keys=keys, left_out=len(lines) - len(shown),
            traces=[_trace(line, name, asked, over) for line, name in zip(shown, names, strict=True)],
        )  # fmt: skip

    def chart(self, found: CurveLines, *, log: bool = False) -> dict[str, Any]:
        """The same as a Vega-Lite figure."""
        return figures.pages.lines_chart(found, figures.pages.curve_title(found.key, self._catalog), log=log)

    def _of_trials(self, trials: Sequence[int]) -> list[_Line]:
        found = []
        for number in dict.fromkeys(trials):
            one = self._store.trials.get(number)
            outcome = TrialOutcome(one.id, one.cell, one.candidate, one.repeat, {}, one.state, one.diverged)
            labels = {"trial": str(number), **one.labels}
            found.append(_Line(one.sweep, one.cell, one.candidate, labels, [outcome]))
        return found

    def _of_sweep(self, asked: CurvesAsked) -> list[_Line]:
        assert asked.sweep is not None
        outcomes = self._store.outcomes.of(asked.sweep, asked.cells)
        present = {cell.index for cell in outcomes.cells}
        if missing := [cell for cell in asked.cells or () if cell not in present]:
            raise NotFoundError(f"no cell {missing[0]} in sweep {asked.sweep}")
        if asked.by == "cell":
            return list(self._best(outcomes))
        cells = {cell.index: cell.labels for cell in outcomes.cells}
        by_place: dict[tuple[int, ...], list[TrialOutcome]] = {}
        for trial in outcomes.trials:
            place = (trial.cell, trial.candidate) + ((trial.repeat,) if asked.by == "trial" else ())
            by_place.setdefault(place, []).append(trial)
        tuned = {(one.cell, one.index): one.labels for one in outcomes.candidates}
        return [
            _Line(
                outcomes.sweep, place[0], place[1],
                {**cells[place[0]], **tuned[place[0], place[1]], **(those[0].repeat_labels if len(place) > 2 else {})},
                those,
            )
            for place, those in sorted(by_place.items())
        ]  # fmt: skip

    def _best(self, outcomes: SweepOutcomes) -> Iterable[_Line]:
        """Of each cell the candidate that is selected, or that is ahead, or that has begun."""
        select = selection(outcomes.spec)
        better = direction(select.metric, self._catalog)
        competing = by_cell(outcomes)
        for cell in outcomes.cells:
            chosen = summary_of(cell.index, competing[cell.index], select.key, better).candidate
            if chosen is None:
                begun = [one.index for one in competing[cell.index] if one.started]
                chosen = next(iter(begun or [one.index for one in competing[cell.index]]), None)
            if chosen is None:
                continue
            labels = next((one.labels for one in competing[cell.index] if one.index == chosen), {})
            trials = [one for one in outcomes.trials_of(cell.index) if one.candidate == chosen]
            yield _Line(outcomes.sweep, cell.index, chosen, {**cell.labels, **labels}, trials)


def _trace(line: _Line, name: str, asked: CurvesAsked, over: Mapping[int, Sequence[XY]]) -> CurveLine:
    runs = (over.get(trial.trial) for trial in line.trials)
    told = [smoothed(points, asked.smoothing) for points in runs if points]
    if len(told) > 1:
        points, band = averaged(told)
    else:
        points, band = (told[0] if told else []), []
    return CurveLine(
        label=name, sweep=line.sweep, cell=line.cell, candidate=line.candidate,
        trials=[one.trial for one in line.trials], runs=len(told),
        running=any(one.state in TRIAL_ACTIVE for one in line.trials),
        points=thinned(points, asked.points), band=thinned_band(band, asked.points),
    )  # fmt: skip


def _over(points: Points, clock: Sequence[tuple[int, float]] | None) -> list[XY]:
    """The points over the steps, or over the seconds that a clock tells at steps; none where it tells nothing."""
    if clock is None:
        return [(float(step), value) for step, value in points]
    if not clock:
        return []
    import numpy as np  # only now: who asks by steps waits for nothing

    steps, seconds = [float(step) for step, _ in clock], [second for _, second in clock]
    xs = np.interp([float(step) for step, _ in points], steps, seconds)
    return [(float(x), value) for x, (_, value) in zip(xs, points, strict=True)]


def _usual(keys: Sequence[str], lines: Sequence[_Line], store: Store) -> list[str]:
    """What is drawn where nothing is asked for: what the sweep selects by, where it is reported, and the loss."""
    wanted: list[str] = []
    if lines:
        select = selection(store.sweeps.get(lines[0].sweep).spec)
        wanted = [f"{'validation' if select.split == 'validation' else 'test'}/{select.metric}", "train/loss"]
    return [key for key in wanted if key in keys] or [*keys[:1]] or ["train/loss"]


def _names(every: Sequence[Labels]) -> list[str]:
    """What tells each of some lines apart from the others, in as few words as do."""
    axes = list(dict.fromkeys(axis for labels in every for axis in labels))
    telling = [axis for axis in axes if len({labels.get(axis) for labels in every}) > 1] or axes
    short = {axis: axis.rpartition(".")[2] for axis in telling}
    return [
        " · ".join(one if axis in PLAIN else f"{short[axis]} {one}" for axis, one in labels.items() if axis in short)
        for labels in every
    ]


MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"
_PAGE: Final = 200


class FrameQueries:
    """Makes frames; NotFoundError comes before the first piece."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def sweeps(self) -> Iterator[bytes]:
        """Every sweep, newest first."""
        return frames.sweeps(self._summaries())

    def trials(self, sweep: int) -> Iterator[bytes]:
        """A sweep's trials with labels, metrics, recipe and provenance."""
        return frames.trials(self._store.outcomes.of(sweep, trials=False), self._store.outcomes.provenance(sweep))

    def candidates(self, sweep: int) -> Iterator[bytes]:
        """A sweep's candidates with their means."""
        outcomes = self._store.outcomes.of(sweep)
        return frames.candidates(outcomes, direction(selection(outcomes.spec).metric, self._catalog))

    def curves(self, sweep: int, key: str | None = None) -> Iterator[bytes]:
        """The curves of a sweep's trials, all or one."""
        self._store.sweeps.get(sweep)
        return frames.curves(self._curves(sweep, key))

    def _curves(self, sweep: int, key: str | None) -> Iterator[tuple[int, list[Curve]]]:
        for one in self._store.outcomes.provenance(sweep):
            found = self._store.curves.of(one.outcome.trial)
            yield one.outcome.trial, [curve for curve in found if key in {None, curve.key}]

    def _summaries(self) -> Iterator[SweepSummary]:
        cursor: str | None = None
        while True:
            page = self._store.sweeps.page(None, None, cursor, _PAGE)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return


_USUAL: Final = ("map@r", "recall@1", "nmi", "f1", "norm_var")
"""Metrics that are shown of several sweeps, where these have them and nobody says which."""
MOST_USUAL: Final = 6


@dataclass(frozen=True, slots=True)
class ListingWish:
    """Which rows a client asks for."""

    where: str = ""
    of: Listed = "trials"
    sweep: int | None = None

    def sought(self, *names: str, path: str = "sort") -> Sought:
        """The same for the store; raises InvalidFilterError."""
        return Sought(where=filters.parse(self.where), kind=self.of, sweep=self.sweep, names=names, path=path)


class ListingQueries:
    """Answers with listings."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def columns(self, sweep: int | None = None) -> list[ListedColumn]:
        """What the trials of a sweep, or of all, may be filtered by, sorted by and drawn over."""
        return self._store.listings.columns(sweep)

    def page(
        self,
        wish: ListingWish,
        sort: str,
        columns: Sequence[str] | None,
        cursor: str | None,
        limit: int,
        *,
        count: bool,
    ) -> Listing:
        """A page of trials or candidates; raises InvalidFilterError."""
        shown = self.usual(wish.sweep) if columns is None else list(dict.fromkeys(columns))
        return self._store.listings.page(wish.sought(), sort, shown, cursor, limit, count=count)

    def usual(self, sweep: int | None) -> list[str]:
        """The metrics that are shown where nobody says which: those of a sweep's tables."""
        known = {column.name for column in self.columns(sweep) if column.role == "metric"}
        wanted: list[str] = []
        if sweep is not None:
            for table in self._store.listings.tables(sweep):
                wanted += [one if isinstance(one, str) else str(one.get("metric")) for one in table.get("metrics", [])]
        return [name for name in dict.fromkeys([*wanted, *_USUAL]) if name in known][:MOST_USUAL]


Plot = Literal["scatter", "norms", "parallel", "sensitivity", "heat", "importance", "history", "distribution"]
MOST_SECONDS: Final = 40
"""That Optuna may take."""
MOST_COLUMNS: Final = 8
"""Of parallel coordinates."""


class PlotQueries:
    """Answers with Vega-Lite."""

    def __init__(self, store: Store, catalog: Catalog, listings: ListingQueries) -> None:
        self._store, self._catalog, self._listings = store, catalog, listings

    def draw(self, plot: Plot, wanted: ListingWish, x: str, y: str, colour: str) -> dict[str, Any]:
        """A plot; ConflictError where there is nothing that it could be drawn over, InvalidFilterError."""
        choice = _Choice(self._listings.columns(wanted.sweep), wanted)
        colour = colour or choice.colour
        if plot in ("scatter", "norms"):
            across = x or ("norm_var" if plot == "norms" else choice.number)
            upwards = y or ("recall@1" if plot == "norms" else choice.score)
            sought = wanted.sought(across, upwards, colour, path="plot")
            points = self._store.plots.points(sought, (across, upwards), colour)
            return figures.pages.scatter(points, across, upwards, colour)
        if plot == "distribution":
            number, colour = x or y or choice.score, colour if wanted.sweep else "sweep"
            points = self._store.plots.points(wanted.sought(number, colour, path="plot"), (number,), colour)
            return figures.pages.distribution(points, number, colour)
        if plot == "history":
            number = y or choice.score
            sought = wanted.sought(number, colour, "ended", path="plot")
            points = self._store.plots.history(sought, number, colour, higher=self._higher(number))
            return figures.pages.history(points, number, colour)
        if plot == "parallel":
            names = list(dict.fromkeys([*choice.axes, *([x] if x else []), y or choice.score]))[-MOST_COLUMNS:]
            points = self._store.plots.points(wanted.sought(*names, colour, path="plot"), names, colour)
            return figures.pages.parallel(points, names, colour)
        return self._means(plot, wanted, choice, (x, y, colour))

    def _means(self, plot: Plot, wanted: ListingWish, choice: "_Choice", said: tuple[str, str, str]) -> dict[str, Any]:
        x, y, colour = said
        if plot == "importance":
            return self._importance(wanted, choice, y or choice.score)
        if plot == "sensitivity":
            axis, number = x or choice.axis, y or choice.score
            points = self._store.plots.means(wanted.sought(axis, number, colour, path="plot"), (axis, colour), number)
            return figures.pages.sensitivity(points, axis, number, colour)
        axis, other = x or choice.axis, y or choice.other
        sought = wanted.sought(axis, other, choice.score, path="plot")
        points = self._store.plots.means(sought, (axis, other), choice.score)
        return figures.pages.heat(points, axis, other, choice.score)

    def _importance(self, wanted: ListingWish, choice: "_Choice", number: str) -> dict[str, Any]:
        candidates = ListingWish(wanted.where, "candidates", wanted.sweep)
        axes = choice.tuned
        points = self._store.plots.labelled(candidates.sought(number, *axes, path="plot"), number, axes)
        if len(points.rows) < 4:
            raise ConflictError(f"{len(points.rows)} candidates have `{number}`; importance needs four or more")
        columns = {axis: _typed([row[f"k{at}"] for row in points.rows]) for at, axis in enumerate(axes)}
        asked = {"axes": columns, "numbers": [row["v0"] for row in points.rows], "higher": self._higher(number)}
        shares = _importances(asked)
        of = f"{len(points.rows):,} of {points.total:,}"
        said = f"PED-ANOVA (Optuna) over the means of {of} candidates; it says what goes with it, not what causes it"
        return figures.pages.importance(shares, number, points.total, said)

    def _higher(self, number: str) -> bool:
        """Whether more of it is better."""
        if number in ("score", "seconds"):
            return number == "score"
        return metric_better(number.rpartition("/")[2], self._catalog) != "lower"


class _Choice:
    """What is drawn where nobody says."""

    def __init__(self, columns: Sequence[ListedColumn], wanted: ListingWish) -> None:
        own = [one for one in columns if wanted.of == "trials" or one.role != "repeat"]
        self.score = "score"
        self.axes = [one.name for one in own if one.role in ("compare", "tune") and one.numeric]
        self.tuned = [one.name for one in own if one.role in ("compare", "tune") and one.labelled]
        metrics = [one.name for one in own if one.role == "metric" and "/" not in one.name]
        self.number = (self.axes or [name for name in metrics if name != "score"] or ["seconds"])[0]
        self._labels = [one.name for one in own if one.labelled]
        compared = [one.name for one in own if one.role == "compare" and one.labelled]
        self.colour = (compared or ["sweep"])[0]

    @property
    def axis(self) -> str:
        """The axis that a sensitivity is shown of: the first that is tuned by number, else any."""
        if not self._labels:
            raise ConflictError("there is no axis to draw over: no trial here has labels")
        return (self.axes or self._labels)[0]

    @property
    def other(self) -> str:
        """Another one."""
        others = [name for name in self._labels if name != self.axis]
        if not others:
            raise ConflictError("there is one axis alone; a map takes two")
        return others[0]


def _typed(labels: Sequence[str | None]) -> list[float | str | None]:
    try:
        return [float(label) for label in labels]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return list(labels)


def _importances(asked: Mapping[str, Any]) -> dict[str, float]:
    """In a process of its own: Optuna's libraries stay out of this one, and what takes too long is ended."""
    command = [sys.executable, "-P", "-m", "orchestrator.run.optuna"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module, its input as data
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=MOST_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        said = f"the importance was not computed within {MOST_SECONDS} seconds; try a narrower filter"
        raise BusyError(said) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:] or ["no reason"]
        raise ConflictError(f"the importance cannot be computed: {last[0][:300]}") from error
    shares: dict[str, float] = json.loads(done.stdout)
    return shares


class TrialQueries:
    """Answers about trials."""

    def __init__(self, store: Store, catalog: Catalog, links: Links, files: FigureFiles) -> None:
        self._store, self._catalog, self._links, self._files = store, catalog, links, files

    def page(
        self, sweep: int, state: str | None, cell: int | None, cursor: str | None, limit: int
    ) -> Page[TrialSummary]:
        """A sweep's trials in their order."""
        return self._store.trials.page(sweep, state, cell, cursor, limit)

    def get(self, trial: int) -> TrialView:
        """One trial whole."""
        found = self._store.trials.get(trial)
        run = self._store.runs.run("trial", found.sweep, trial)
        link = self._links.to(self._store.runs.experiment(found.sweep), run) if run else None
        outdated = [str(one) for one in catalogs.changes(catalogs.stamp(found.recipe), self._catalog)]
        collected = self._store.collection.of_trial(trial)
        said = self._store.remarks.of("trial", found.sweep, trial)
        told = {"mlflow_url": link, "outdated": outdated, "collected": collected, "remark": said}
        return found.model_copy(update=told)

    def curves(self, trial: int) -> list[Curve]:
        """A trial's curves, one a metric."""
        return self._store.curves.of(trial)

    def curves_figure(self, trial: int) -> dict[str, Any]:
        """A trial's curves as a Vega-Lite figure."""
        return figures.pages.curves(self._store.curves.of(trial), f"Trial {trial}", self._catalog)

    def neighbours(self, trial: int) -> list[Neighbour]:
        """The trials that a trial is compared with, and how their recipes differ."""
        return self._store.neighbours.of(trial)

    def kept(self, trial: int) -> tuple[str, Sequence[str]] | None:
        """The folder of the storage in which a finished training's files lie, and their names."""
        found = self._store.artifacts.of_trial(trial)
        return (found.folder, found.names) if found else None

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from a character offset on."""
        return self._store.logs.of(trial, offset)

    def files(self, trial: int) -> list[FigureFile]:
        """The files that a trial's training kept for figures."""
        return self._files.listed(trial)

    def file(self, trial: int, name: str) -> Rendered:
        """One of these files."""
        return self._files.read(trial, name)
