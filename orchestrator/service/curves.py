"""Curves of several trainings beside each other: chosen trials, a cell's candidates, or cells by their best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from orchestrator.publish import figures
from orchestrator.publish.aggregate import by_cell
from orchestrator.publish.figures.sketch import averaged, smoothed, thinned, thinned_band
from orchestrator.publish.select import direction, selection, summary_of
from orchestrator.record.reads.curves import Points
from orchestrator.record.store import Store
from orchestrator.views.curves import Against, CurveLine, CurveLines
from orchestrator.views.errors import NotFoundError
from orchestrator.views.lifecycle import TRIAL_ACTIVE
from orchestrator.views.outcomes import SweepOutcomes, TrialOutcome
from orchestrator.views.planned import Labels
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
