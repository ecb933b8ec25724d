"""How long steps of a sweep's trainings take, and when its last one will have ended by that."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_of
from orchestrator.cost.time_left import Pending, Timed, TimeLeft, time_left
from orchestrator.record.database import chunked
from orchestrator.record.reads.steps import StepTally
from orchestrator.record.schema import attempt, training, trial
from orchestrator.views.lifecycle import TrialState

MOST_TIMED: Final = 200
"""Trainings, the last in the order of the plan, by whose length the time that is left is told."""
LEAST_WINDOW: Final = 30.0
"""Seconds, at least, over which it is measured how many train at once."""
_KEPT: Final = 20_000  # kinds of cells


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
        self, connection: sa.Connection, sweep: int, found: StepTally, total: int, now: datetime | None = None
    ) -> TimeLeft | None:
        """That of a sweep of `total` planned trials; none where nothing waits or was timed."""
        now = now or datetime.now(UTC)
        share, mean = found.expected_share(), found.mean or 0.0
        going, begun = _running(connection, sweep, now, mean)
        stretches = [*_timed(connection, sweep), *begun]
        if not stretches:
            return None
        waiting = _waiting(connection, sweep, mean)
        rows = sum(one.trials for one in found.kinds.values())
        unborn = max(0, total - rows)
        cells = {cell for cell, _ in going} | {cell for cell, _, _ in waiting} | {one.cell for one in stretches}
        kinds = self._of_cells(connection, sweep, cells)
        pending = [Pending(kinds[cell], number, steps * share) for cell, number, steps in waiting]
        if unborn:  # of a search: what it will propose is taken to be like what it has
            pending.append(Pending(kinds[stretches[-1].cell], unborn, unborn * mean * share))
        timed = [Timed(kinds[one.cell], one.steps, one.seconds, one.whole) for one in stretches if one.steps > 0]
        running = [(kinds[cell], steps * share) for cell, steps in going]
        return time_left(running, pending, timed, _at_once(stretches, len(going), now))

    def _of_cells(self, connection: sa.Connection, sweep: int, cells: Collection[int]) -> dict[int, str]:
        """What the trainings of a cell have in common with all whose steps take as long, by its first trial."""
        missing = [cell for cell in cells if (sweep, cell) not in self._kinds]
        for chunk in chunked(missing, 500):
            first = sa.select(sa.func.min(trial.c.id)).where(trial.c.sweep_id == sweep, trial.c.cell.in_(chunk))
            query = sa.select(trial.c.cell, training.c.recipe).join(training, training.c.id == trial.c.training_id)
            for row in connection.execute(query.where(trial.c.id.in_(first.group_by(trial.c.cell)))):
                self._kinds[sweep, row.cell] = sha256(shape_of(row.recipe).encode()).hexdigest()[:16]
        found = {cell: self._kinds[sweep, cell] for cell in cells}
        while len(self._kinds) > _KEPT:
            self._kinds.pop(next(iter(self._kinds)), None)
        return found


def _timed(connection: sa.Connection, sweep: int) -> list[Stretch]:
    """The last trainings of the sweep that finished or were pruned, by the clock of their attempt where it was one."""
    columns = (trial.c.cell, training.c.step, training.c.seconds, attempt.c.started, attempt.c.ended)
    query = (
        sa.select(*columns)
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, attempt.c.training_id == training.c.id)
        .where(trial.c.sweep_id == sweep, ~trial.c.reused, training.c.source.is_(None), attempt.c.ended.is_not(None))
        .order_by(trial.c.position.desc())
        .limit(MOST_TIMED)
    )
    stretches = []
    for state, ending in ((TrialState.FINISHED, "finished"), (TrialState.PRUNED, "stopped")):
        for row in connection.execute(query.where(trial.c.state == state, attempt.c.state == ending)):
            held = (row.ended - row.started).total_seconds()
            seconds = max(held, row.seconds or 0.0)  # over all its attempts
            whole = state is TrialState.FINISHED
            stretches.append(Stretch(row.cell, row.started, row.ended, float(row.step), seconds, whole))
    return stretches


def _running(
    connection: sa.Connection, sweep: int, now: datetime, mean: float
) -> tuple[list[tuple[int, float]], list[Stretch]]:
    """The cell and the steps left of each training that runs, and what it has done so far.

    One that has not told its length yet has the `mean`, here as among those that wait.
    """
    columns = (trial.c.cell, training.c.id, training.c.step, training.c.total_steps, attempt.c.started)
    query = (
        sa.select(*columns, attempt.c.resumed_from)
        .join(training, training.c.id == trial.c.training_id)
        .join(attempt, sa.and_(attempt.c.training_id == training.c.id, attempt.c.state == "running"))
        .where(trial.c.sweep_id == sweep, trial.c.state == TrialState.RUNNING, training.c.source.is_(None))
    )
    rows: dict[int, Any] = {row.id: row for row in connection.execute(query)}  # two trials may share a training
    going = [(row.cell, max(0.0, (row.total_steps or mean) - row.step)) for row in rows.values()]
    begun = []
    for row in rows.values():
        # What it did before this attempt was not done in this attempt's time.
        steps = 0.0 if row.resumed_from else float(row.step)
        begun.append(Stretch(row.cell, row.started, now, steps, (now - row.started).total_seconds(), False))
    return going, begun


def _waiting(connection: sa.Connection, sweep: int, mean: float) -> list[tuple[int, int, float]]:
    """By cell the number of trainings that wait and the steps that they have to go."""
    own = (trial.c.sweep_id == sweep, trial.c.state == TrialState.WAITING, training.c.source.is_(None))
    columns = (sa.func.min(trial.c.cell).label("cell"), training.c.step, training.c.total_steps)
    each = (
        sa.select(*columns)
        .select_from(trial)
        .join(training, training.c.id == trial.c.training_id)
        .where(*own)
        .group_by(training.c.id, training.c.step, training.c.total_steps)
        .subquery()
    )
    unknown = sa.func.sum(sa.case((each.c.total_steps == 0, 1), else_=0)).label("unknown")
    left = sa.func.sum(sa.case((each.c.total_steps == 0, 0), else_=each.c.total_steps - each.c.step)).label("left")
    query = sa.select(each.c.cell, sa.func.count().label("n"), unknown, left).group_by(each.c.cell)
    return [(row.cell, row.n, float(row.left) + int(row.unknown) * mean) for row in connection.execute(query)]


def _at_once(stretches: Sequence[Stretch], running: int, now: datetime) -> float:
    """How many train at once on the average of the last few trainings' length; a gap between two counts as idle."""
    lengths = [(one.ended - one.began).total_seconds() for one in stretches]
    first = min(one.began for one in stretches)
    window = min(max(LEAST_WINDOW, 4 * sum(lengths) / len(lengths)), max(1.0, (now - first).total_seconds()))
    since = now - timedelta(seconds=window)
    busy = sum(max(0.0, (one.ended - max(one.began, since)).total_seconds()) for one in stretches)
    least = max(1, running)  # less than half of it was measured while the sweep had no turn
    return busy / window if busy / window >= least / 2 else float(least)
