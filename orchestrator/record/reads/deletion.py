"""What goes with a sweep that is deleted."""

from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.schema import attempt, training, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.lifecycle import SWEEP_ENDED


@dataclass(frozen=True, slots=True)
class Deletion:
    """What goes with a sweep beside its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    experiment: str | None  # the tracker's
    busy: bool  # whether one of the trainings is still being stopped, and writes into its folder meanwhile


def deletion(connection: sa.Connection, sweep: int) -> Deletion | None:
    """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
    table = schema.sweep
    head = sa.select(table.c.state, table.c.mlflow_experiment).where(table.c.id == sweep)
    row = connection.execute(head).one_or_none()
    if row is None:
        return None
    if row.state not in SWEEP_ENDED:
        raise ConflictError(f"sweep {sweep} is {row.state}; cancel it before it is deleted")
    uids = connection.execute(sa.select(training.c.uid).where(training.c.id.in_(only_of(sweep)))).scalars()
    stopping = attempt.c.training_id.in_(only_of(sweep)), attempt.c.state == "running"
    busy = connection.execute(sa.select(attempt.c.id).where(*stopping).limit(1)).first() is not None
    return Deletion(tuple(uids), row.mlflow_experiment, busy)


def only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that trials of this sweep point to and of no other, with those that they replaced."""
    other = trial.alias("other")
    shared = sa.exists().where(other.c.training_id == trial.c.training_id, other.c.sweep_id != sweep)
    alone = sa.select(trial.c.training_id.label("id")).where(trial.c.sweep_id == sweep, ~shared).cte(recursive=True)
    shown = sa.exists().where(other.c.training_id == training.c.id, other.c.sweep_id != sweep)
    return sa.select(alone.union(sa.select(training.c.id).where(training.c.heir == alone.c.id, ~shown)).c.id)
