"""How long steps of a sweep's trainings take, and when its last one will have ended by that."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_key, shape_of
from orchestrator.cost.time_left import Pending, Timed, TimeLeft, time_left
from orchestrator.record.database import chunked
from orchestrator.record.reads.steps import StepTally
from orchestrator.record.schema import attempt, metric, training, trial
from orchestrator.views.states import TrialState

PRIOR_SHARE: Final = 0.5
PRIOR_SPREAD: Final = 0.35
"""What is thought of a candidate before any was judged: something between the first look and the end. It counts as one
candidate beside those that were."""


@dataclass(frozen=True, slots=True)
class ExpectedShare:
    """The share that trainings come to on the average, and its relative deviation."""

    mean: float
    doubt: float


def expected_share(shares: Sequence[float], waiting: int) -> ExpectedShare:
    """By the shares that judged candidates came to, for so many candidates that wait."""
    number = len(shares) + 1
    mean = (math.fsum(shares) + PRIOR_SHARE) / number
    off = math.fsum((one - mean) ** 2 for one in shares) + (PRIOR_SHARE - mean) ** 2 + PRIOR_SPREAD**2
    # What is not known of the mean, and what those that wait differ from it by chance.
    return ExpectedShare(mean, math.sqrt(off / number * (1 / number + 1 / max(1, waiting))) / mean)


def early_ends(connection: sa.Connection, sweep: int, unborn: int) -> ExpectedShare:
    """That of a sweep of which so many trials have no row yet.

    The first candidate of a cell is left out: nothing was there to be worse than, so that it came to its end, and it
    says nothing of those behind it.
    """
    ended = trial.c.state.in_((TrialState.FINISHED, TrialState.PRUNED))
    trained = sa.case((training.c.step < training.c.total_steps, training.c.step), else_=training.c.total_steps)
    columns = (
        trial.c.cell,
        trial.c.candidate,
        sa.func.count().label("n"),
        sa.func.sum(sa.case((ended, 1), else_=0)).label("ended"),
        sa.func.sum(sa.case((trial.c.state == TrialState.WAITING, 1), else_=0)).label("waiting"),
        sa.func.sum(sa.case((ended, trained), else_=0)).label("trained"),
        sa.func.sum(sa.case((ended, training.c.total_steps), else_=0)).label("planned"),
    )
    query = (
        sa.select(*columns)
        .join(training, training.c.id == trial.c.training_id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused)
        .group_by(trial.c.cell, trial.c.candidate)
        .order_by(trial.c.cell, sa.func.min(trial.c.position))
    )
    shares, waits, last, repeats = list[float](), 0, -1, 1
    for row in connection.execute(query):
        repeats = max(repeats, row.n)
        waits += row.waiting > 0
        if row.ended and row.planned and row.cell == last:
            shares.append(row.trained / row.planned)
        last = row.cell
    return expected_share(shares, waits + math.ceil(unborn / repeats))


MOST_TIMED: Final = 200
"""Trainings, the last in the order of the plan, by whose length the time that is left is told."""
LEAST_WINDOW: Final = 30.0
"""Seconds, at least, over which it is measured how many train at once."""
_KEPT: Final = 20_000  # kinds of cells


# The queries are made once: a list of sweeps asks each of them for every one that runs.
_SWEEP: Final = trial.c.sweep_id == sa.bindparam("sweep")
_ENDED: Final = (
    sa.select(trial.c.cell, training.c.step, training.c.seconds, attempt.c.started, attempt.c.ended, attempt.c.holder)
    .join(training, training.c.id == trial.c.training_id)
    .join(attempt, attempt.c.training_id == training.c.id)
    .where(_SWEEP, ~trial.c.reused, training.c.source.is_(None), attempt.c.ended.is_not(None))
    .where(trial.c.state == sa.bindparam("state"), attempt.c.state == sa.bindparam("ending"))
    .order_by(trial.c.position.desc())
    .limit(MOST_TIMED)
)


def _trains() -> sa.Select[Any]:
    """What trains, with the first number that its attempt told."""
    columns = (trial.c.cell, training.c.id, training.c.step, training.c.total_steps, attempt.c.started)
    of_attempt = sa.select(metric.c.id).where(metric.c.attempt_id == attempt.c.id)
    first = of_attempt.order_by(metric.c.key, metric.c.step).limit(1).scalar_subquery()
    told = metric.alias()
    return (
        sa.select(*columns, attempt.c.resumed_from, told.c.step.label("from_step"), told.c.at)
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "running"))
        .outerjoin(told, told.c.id == first)
        .where(_SWEEP, trial.c.state == TrialState.RUNNING, training.c.source.is_(None))
    )


def _waits() -> sa.Select[Any]:
    """By cell what waits, each training once."""
    columns = (sa.func.min(trial.c.cell).label("cell"), training.c.step, training.c.total_steps)
    each = (
        sa.select(*columns)
        .select_from(trial)
        .join(training, training.c.id == trial.c.training_id)
        .where(_SWEEP, trial.c.state == TrialState.WAITING, training.c.source.is_(None))
        .group_by(training.c.id, training.c.step, training.c.total_steps)
        .subquery()
    )
    unknown = sa.func.sum(sa.case((each.c.total_steps == 0, 1), else_=0)).label("unknown")
    left = sa.func.sum(sa.case((each.c.total_steps == 0, 0), else_=each.c.total_steps - each.c.step)).label("left")
    return sa.select(each.c.cell, sa.func.count().label("n"), unknown, left).group_by(each.c.cell)


_TRAINS: Final = _trains()
_WAITS: Final = _waits()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which a slot was held by a training of the sweep, and what it did meanwhile."""

    cell: int
    began: datetime
    ended: datetime
    steps: float
    seconds: float
    whole: bool


class Pace:
    """Tells the time left; it remembers which cells take as long a step, which never changes."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int], str] = {}

    def left(
        self, connection: sa.Connection, sweep: int, found: StepTally, total: int, *, prunes: bool = False
    ) -> TimeLeft | None:
        """That of a sweep of `total` planned trials, with early stopping or without; none where nothing was timed."""
        now, mean = datetime.now(UTC), found.mean or 0.0
        unborn = max(0, total - sum(one.trials for one in found.kinds.values()))
        early = early_ends(connection, sweep, unborn) if prunes else ExpectedShare(found.expected_share(), 0.0)
        share = early.mean
        going, begun = _running(connection, sweep, now, mean)
        stretches = [*_timed(connection, sweep), *begun]
        if not stretches:
            return None
        waiting = _waiting(connection, sweep, mean)
        cells = {cell for cell, _ in going} | {cell for cell, _, _ in waiting} | {one.cell for one in stretches}
        kinds = self._of_cells(connection, sweep, cells)
        pending = [Pending(kinds[cell], number, steps * share) for cell, number, steps in waiting]
        if unborn:  # of a search: what it will propose is taken to be like what it has
            pending.append(Pending(kinds[stretches[-1].cell], unborn, unborn * mean * share))
        timed = [Timed(kinds[one.cell], one.steps, one.seconds, one.whole) for one in stretches if one.steps > 0]
        running = [(kinds[cell], steps * share) for cell, steps in going]
        return time_left(running, pending, timed, _at_once(stretches, len(going), now), early.doubt)

    def _of_cells(self, connection: sa.Connection, sweep: int, cells: Collection[int]) -> dict[int, str]:
        """What the trainings of a cell have in common with all whose steps take as long, by its first trial."""
        missing = [cell for cell in cells if (sweep, cell) not in self._kinds]
        for chunk in chunked(missing, 500):
            first = sa.select(sa.func.min(trial.c.id)).where(trial.c.sweep_id == sweep, trial.c.cell.in_(chunk))
            query = sa.select(trial.c.cell, training.c.recipe).join(training, training.c.id == trial.c.training_id)
            for row in connection.execute(query.where(trial.c.id.in_(first.group_by(trial.c.cell)))):
                self._kinds[sweep, row.cell] = shape_key(shape_of(row.recipe))
        found = {cell: self._kinds[sweep, cell] for cell in cells}
        while len(self._kinds) > _KEPT:
            self._kinds.pop(next(iter(self._kinds)), None)
        return found


def _timed(connection: sa.Connection, sweep: int) -> list[Stretch]:
    """The last trainings of the sweep that finished or were pruned, by the clock of their attempt where it was one.

    Of the first one on a slot the training's own time counts: the slot had to be made, and its libraries to be loaded.
    """
    rows = [
        (state is TrialState.FINISHED, row)
        for state, ending in ((TrialState.FINISHED, "finished"), (TrialState.PRUNED, "stopped"))
        for row in connection.execute(_ENDED, {"sweep": sweep, "state": state, "ending": ending})
    ]
    stretches, known = [], set[str | None]()
    for whole, row in sorted(rows, key=lambda one: one[1].started):
        held = (row.ended - row.started).total_seconds()
        seconds = max(held, row.seconds or 0.0)  # over all its attempts
        if row.holder not in known and row.seconds:
            seconds = row.seconds
        known.add(row.holder)
        stretches.append(Stretch(row.cell, row.started, row.ended, float(row.step), seconds, whole))
    return stretches


def _running(
    connection: sa.Connection, sweep: int, now: datetime, mean: float
) -> tuple[list[tuple[int, float]], list[Stretch]]:
    """The cell and the steps left of each training that runs, and what it has done since it first told a number.

    One that has not told its length yet has the `mean`, here as among those that wait.
    """
    told = connection.execute(_TRAINS, {"sweep": sweep})
    rows: dict[int, Any] = {row.id: row for row in told}  # two trials may share a training
    going = [(row.cell, max(0.0, (row.total_steps or mean) - row.step)) for row in rows.values()]
    begun = []
    for row in rows.values():
        # Before it told a number its slot was made, or another attempt did these steps.
        before = (row.step if row.resumed_from else 0) if row.at is None else row.from_step
        steps = max(0.0, float(row.step - before))
        begun.append(Stretch(row.cell, row.started, now, steps, (now - (row.at or row.started)).total_seconds(), False))
    return going, begun


def _waiting(connection: sa.Connection, sweep: int, mean: float) -> list[tuple[int, int, float]]:
    """By cell the number of trainings that wait and the steps that they have to go."""
    rows = connection.execute(_WAITS, {"sweep": sweep})
    return [(row.cell, row.n, float(row.left) + int(row.unknown) * mean) for row in rows]


def _at_once(stretches: Sequence[Stretch], running: int, now: datetime) -> float:
    """How many train at once on the average of the last few trainings' length; a gap between two counts as idle."""
    lengths = [(one.ended - one.began).total_seconds() for one in stretches]
    first = min(one.began for one in stretches)
    window = min(max(LEAST_WINDOW, 4 * sum(lengths) / len(lengths)), max(1.0, (now - first).total_seconds()))
    since = now - timedelta(seconds=window)
    busy = sum(max(0.0, (one.ended - max(one.began, since)).total_seconds()) for one in stretches)
    least = max(1, running)  # less than half of it was measured while the sweep had no turn
    return busy / window if busy / window >= least / 2 else float(least)
