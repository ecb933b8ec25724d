"""How far sweeps are, how fast their trainings are, and when they will end."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.estimate import Pending, Timed, TimeLeft, shape_key, shape_of, time_left
from orchestrator.host.cache import Cache
from orchestrator.record.database import Database, chunked
from orchestrator.record.schema import attempt, metric, training, trial
from orchestrator.record.trials import is_expanded
from orchestrator.views.states import SWEEP_ENDED, SweepState, TrialState
from orchestrator.views.sweeps import Counts, StepCount

_LEAST_ENDED: Final = 3
"""Ended trials that are needed to estimate how early others end."""
_DONE: Final = ("finished", "diverged", "pruned", "running")
"""Kinds of trials whose trained steps are done: a diverged training is complete, a failed or cancelled one is not."""
_ENDED_KEPT: Final = 1_024  # sweeps
_PRIOR_SHARE: Final = 0.5
_PRIOR_SPREAD: Final = 0.35
"""The prior for the length of a candidate, which counts as one judged candidate."""
_MOST_TIMED: Final = 200
"""The last trainings of the plan from which the remaining time is estimated."""
_LEAST_WINDOW: Final = 30.0
"""The least seconds over which the number of concurrent trainings is measured."""

_SWEEPS_KEPT: Final = 256  # sweeps
LARGE: Final = 1_000
"""Trials from which on computations over a whole sweep are expensive."""


Tally = Mapping[str, Any]
"""By kind of trial (a state, or `diverged`), a row with the number of `trials`, their `planned` and `trained` steps,
and the number of trials of `unknown` length, which have no planned steps."""


class SweepProgress(NamedTuple):
    """The progress of a sweep: its trials by state, trained steps and time left."""

    steps: StepCount
    left: TimeLeft | None


class ProgressReader:
    """Computes and caches the progress of sweeps; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ended: Cache[int, StepCount] = Cache(_ENDED_KEPT)
        self._cache: Cache[tuple[int, str, int], SweepProgress] = Cache(_SWEEPS_KEPT)

    def of(self, connection: sa.Connection, row: sa.Row[Any], counts: Counts) -> SweepProgress:
        """The progress of a sweep; `row` has its id, state, start, total and spec.

        For a large running sweep, the value may be some seconds old.
        """
        if not is_expanded(row):
            return SweepProgress(_counted({}, row.total), None)
        if row.state in SWEEP_ENDED:
            stamp = (row.total, counts.model_dump_json())
            steps = self._ended.stamped(row.id, stamp, lambda: _counted(_tally(connection, row.id), row.total))
            return SweepProgress(steps, None)
        if row.total < LARGE:
            return _progress(connection, row)

        def in_background() -> SweepProgress:
            with self._database.reading() as own:
                return _progress(own, row)

        key = (row.id, row.state, row.total)
        return self._cache.get(key, lambda: _progress(connection, row), in_background)


def _progress(connection: sa.Connection, row: sa.Row[Any]) -> SweepProgress:
    tally, left = _tally(connection, row.id), None
    if row.state == SweepState.RUNNING and any(kind in tally for kind in _DONE):  # a paused sweep has no end
        left = _time_left(connection, row.id, tally, row.total, prunes=bool(row.spec.get("prune")))
    return SweepProgress(_counted(tally, row.total), left)


def _counted(tally: Tally, total: int) -> StepCount:
    """The steps of a sweep of `total` planned trials; trials without a row count as the mean of the others."""
    rows = sum(steps.trials for steps in tally.values())
    mean = _mean(tally)
    if not mean:
        return _by_trials({kind: steps.trials for kind, steps in tally.items()}, total)
    shares: dict[str, float] = defaultdict(float)
    for kind, steps in tally.items():
        whole = steps.planned + steps.unknown * mean
        match kind:
            case "pruned":
                shares[kind] += steps.trained
            case "running" | "waiting":  # a waiting trial may resume from a checkpoint
                shares["running"] += steps.trained
                shares["waiting"] += whole - steps.trained
            case _:
                shares[kind] += whole
    shares["waiting"] += max(0, total - rows) * mean
    return _count("steps", shares)


def _mean(tally: Tally) -> float | None:
    """The mean planned steps of the trials of known length."""
    known = sum(steps.trials - steps.unknown for steps in tally.values())
    return sum(steps.planned for steps in tally.values()) / known if known else None


def _by_trials(trials: Mapping[str, int], total: int) -> StepCount:
    """Counts trials instead of steps; a running trial counts as waiting."""
    rows = sum(trials.values())
    waiting = sum(trials.get(kind, 0) for kind in ("running", "waiting")) + max(0, total - rows)
    ended = {kind: number for kind, number in trials.items() if kind not in ("running", "waiting")}
    return _count("trials", ended | {"waiting": waiting})


def _count(unit: Literal["steps", "trials"], shares: Mapping[str, float]) -> StepCount:
    whole = {kind: round(number) for kind, number in shares.items() if round(number)}
    total, done = sum(whole.values()), sum(whole.get(kind, 0) for kind in _DONE)
    percent = 100 * done // total if total else 0
    if whole.get("running"):  # after its last step, a training still evaluates
        percent = min(99, percent)
    return StepCount(unit=unit, total=total, done=done, percent=percent, shares=whole)


_PLANNED: Final = training.c.total_steps
_TRAINED: Final = sa.case((training.c.step < _PLANNED, training.c.step), else_=_PLANNED)


def _tally(connection: sa.Connection, sweep: int) -> Tally:
    diverged = sa.and_(trial.c.diverged, trial.c.state == TrialState.FINISHED)
    query = (
        sa.select(
            sa.case((diverged, "diverged"), else_=trial.c.state).label("kind"), sa.func.count().label("trials"),
            sa.func.sum(_PLANNED).label("planned"), sa.func.sum(_TRAINED).label("trained"),
            sa.func.sum(sa.case((_PLANNED == 0, 1), else_=0)).label("unknown"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep)
        .group_by("kind")
    )  # fmt: skip
    return {row.kind: row for row in connection.execute(query)}


def _time_left(connection: sa.Connection, sweep: int, tally: Tally, total: int, *, prunes: bool) -> TimeLeft | None:
    """The time left of a sweep of `total` planned trials; `None` if no training was timed yet.

    `prunes`: whether the sweep stops trials early.
    """
    now, mean = datetime.now(UTC), _mean(tally) or 0.0
    unborn = max(0, total - sum(steps.trials for steps in tally.values()))
    early = _early_ends(connection, sweep, unborn) if prunes else ExpectedShare(_share_so_far(tally), 0.0)
    share = early.mean
    going, begun = _running(connection, sweep, now, mean)
    stretches = [*_timed(connection, sweep), *begun]
    if not stretches:
        return None
    waiting = _waiting(connection, sweep, mean)
    cells = {cell for cell, _ in going} | {cell for cell, _, _ in waiting} | {at.cell for at in stretches}
    kinds = _kinds(connection, sweep, cells)
    pending = [Pending(kinds[cell], number, steps * share) for cell, number, steps in waiting]
    if unborn:  # a search's coming candidates are taken to be like the present ones
        pending.append(Pending(kinds[stretches[-1].cell], unborn, unborn * mean * share))
    timed = [Timed(kinds[at.cell], at.steps, at.seconds, at.whole) for at in stretches if at.steps > 0]
    running = [(kinds[cell], steps * share) for cell, steps in going]
    return time_left(running, pending, timed, _at_once(stretches, len(going), now), early.doubt)


def _kinds(connection: sa.Connection, sweep: int, cells: Iterable[int]) -> dict[int, str]:
    """By cell, the shape of its trainings, which decides on the duration of a step; read of its first trial."""
    kinds: dict[int, str] = {}
    for chunk in chunked(cells, 500):
        first = sa.select(sa.func.min(trial.c.id)).where(trial.c.sweep_id == sweep, trial.c.cell.in_(chunk))
        query = sa.select(trial.c.cell, training.c.recipe).join(training, training.c.id == trial.c.training_id)
        for row in connection.execute(query.where(trial.c.id.in_(first.group_by(trial.c.cell)))):
            kinds[row.cell] = shape_key(shape_of(row.recipe))
    return kinds


def _share_so_far(tally: Tally) -> float:
    """The share of its planned steps that a trial trains, less than 1 with early stopping or patience."""
    ended = [tally[kind] for kind in ("finished", "pruned") if kind in tally]
    planned, trained = sum(steps.planned for steps in ended), sum(steps.trained for steps in ended)
    enough = sum(steps.trials for steps in ended) >= _LEAST_ENDED
    return trained / planned if planned and trained and enough else 1.0


@dataclass(frozen=True, slots=True)
class ExpectedShare:
    """The mean share of its planned steps that a training trains, and the relative deviation of this mean."""

    mean: float
    doubt: float


def _early_ends(connection: sa.Connection, sweep: int, unborn: int) -> ExpectedShare:
    """The expected share of a sweep that prunes, of which `unborn` trials have no row yet.

    The first candidate of a cell is left out: it had no competitors, so it was never pruned.
    """
    ended = trial.c.state.in_((TrialState.FINISHED, TrialState.PRUNED))

    def summed(condition: sa.ColumnElement[bool], value: Any, name: str) -> sa.ColumnElement[Any]:
        return sa.func.sum(sa.case((condition, value), else_=0)).label(name)

    query = (
        sa.select(
            trial.c.cell, trial.c.candidate, sa.func.count().label("n"), summed(ended, 1, "ended"),
            summed(trial.c.state == TrialState.WAITING, 1, "waiting"), summed(ended, _TRAINED, "trained"),
            summed(ended, _PLANNED, "planned"),
        )
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused)
        .group_by(trial.c.cell, trial.c.candidate)
        .order_by(trial.c.cell, sa.func.min(trial.c.position))
    )  # fmt: skip
    shares, waits, last, repeats = list[float](), 0, -1, 1
    for row in connection.execute(query):
        repeats = max(repeats, row.n)
        waits += row.waiting > 0
        if row.ended and row.planned and row.cell == last:
            shares.append(row.trained / row.planned)
        last = row.cell
    return expected_share(shares, waits + math.ceil(unborn / repeats))


def expected_share(shares: Sequence[float], waiting: int) -> ExpectedShare:
    """Estimate the share of steps that `waiting` candidates will train, from the shares of ended candidates."""
    number = len(shares) + 1
    mean = (math.fsum(shares) + _PRIOR_SHARE) / number
    off = math.fsum((share - mean) ** 2 for share in shares) + (_PRIOR_SHARE - mean) ** 2 + _PRIOR_SPREAD**2
    # The uncertainty of the mean, and the random deviation of the waiting candidates from it.
    return ExpectedShare(mean, math.sqrt(off / number * (1 / number + 1 / max(1, waiting))) / mean)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A period in which a training of a sweep held a slot, with the steps that it trained."""

    cell: int
    began: datetime
    ended: datetime
    steps: float
    seconds: float
    whole: bool


def _running(
    connection: sa.Connection, sweep: int, now: datetime, mean: float
) -> tuple[list[tuple[int, float]], list[Stretch]]:
    """The cell and the remaining steps of each running training, and its progress since its first report.

    A training of unknown length has the `mean`.
    """
    first = metric.alias()
    first_id = sa.select(metric.c.id).where(metric.c.attempt_id == attempt.c.id).order_by(metric.c.key, metric.c.step)
    query = (
        sa.select(
            trial.c.cell, training.c.id, training.c.step, training.c.total_steps, attempt.c.started,
            attempt.c.resumed_from, first.c.step.label("from_step"), first.c.at,
        )
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "running"))
        .outerjoin(first, first.c.id == first_id.limit(1).scalar_subquery())
        .where(trial.c.sweep_id == sweep, trial.c.state == TrialState.RUNNING, training.c.source.is_(None))
    )  # fmt: skip
    rows: dict[int, Any] = {row.id: row for row in connection.execute(query)}  # two trials may share a training
    going = [(row.cell, max(0.0, (row.total_steps or mean) - row.step)) for row in rows.values()]
    begun = []
    for row in rows.values():
        # Before the first report the slot was made, or another attempt did these steps.
        before = (row.step if row.resumed_from else 0) if row.at is None else row.from_step
        steps = max(0.0, float(row.step - before))
        begun.append(Stretch(row.cell, row.started, now, steps, (now - (row.at or row.started)).total_seconds(), False))
    return going, begun


def _timed(connection: sa.Connection, sweep: int) -> list[Stretch]:
    """The last trainings of the sweep that finished or were pruned, with the duration of their attempt.

    For the first training on a slot, its own duration counts, without the time to start the slot.
    """
    query = (
        sa.select(
            trial.c.cell, training.c.step, training.c.seconds, attempt.c.started, attempt.c.ended, attempt.c.holder
        )
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, attempt.c.training_id == training.c.id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused, training.c.source.is_(None), attempt.c.ended.is_not(None))
        .order_by(trial.c.position.desc())
        .limit(_MOST_TIMED)
    )
    rows = [
        (state is TrialState.FINISHED, row)
        for state, ending in ((TrialState.FINISHED, "finished"), (TrialState.PRUNED, "stopped"))
        for row in connection.execute(query.where(trial.c.state == state, attempt.c.state == ending))
    ]
    stretches, known = [], set[str | None]()
    for whole, row in sorted(rows, key=lambda pair: pair[1].started):
        held = (row.ended - row.started).total_seconds()
        seconds = max(held, row.seconds or 0.0)  # over all its attempts
        if row.holder not in known and row.seconds:
            seconds = row.seconds
        known.add(row.holder)
        stretches.append(Stretch(row.cell, row.started, row.ended, float(row.step), seconds, whole))
    return stretches


def _waiting(connection: sa.Connection, sweep: int, mean: float) -> list[tuple[int, int, float]]:
    """By cell, the number of waiting trainings, each once, and their remaining steps."""
    columns = (sa.func.min(trial.c.cell).label("cell"), training.c.step, training.c.total_steps)
    each = (
        sa.select(*columns)
        .select_from(trial)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep, trial.c.state == TrialState.WAITING, training.c.source.is_(None))
        .group_by(training.c.id, training.c.step, training.c.total_steps)
        .subquery()
    )
    unknown = sa.func.sum(sa.case((each.c.total_steps == 0, 1), else_=0)).label("unknown")
    left = sa.func.sum(sa.case((each.c.total_steps == 0, 0), else_=each.c.total_steps - each.c.step)).label("left")
    query = sa.select(each.c.cell, sa.func.count().label("n"), unknown, left).group_by(each.c.cell)
    rows = connection.execute(query)
    return [(row.cell, row.n, float(row.left) + int(row.unknown) * mean) for row in rows]


def _at_once(stretches: Sequence[Stretch], running: int, now: datetime) -> float:
    """How many trainings ran at once on average, over the duration of the last four trainings; gaps count as idle."""
    lengths = [(at.ended - at.began).total_seconds() for at in stretches]
    first = min(at.began for at in stretches)
    window = min(max(_LEAST_WINDOW, 4 * sum(lengths) / len(lengths)), max(1.0, (now - first).total_seconds()))
    since = now - timedelta(seconds=window)
    busy = sum(max(0.0, (at.ended - max(at.began, since)).total_seconds()) for at in stretches)
    least = max(1, running)  # below half of it, the sweep had no turn in the window
    return busy / window if busy / window >= least / 2 else float(least)
