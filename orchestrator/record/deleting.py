"""Deleting a sweep with everything that only it uses."""

from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.errors import ConflictError
from orchestrator.lifecycle import SWEEP_ENDED
from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.schema import attempt, log, metric, training, trial


@dataclass(frozen=True, slots=True)
class Deletion:
    """What goes with a sweep beside its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    experiment: str | None  # the tracker's


class Deleting(Access):
    """The two halves of a deletion: first the files, by this list, then the rows, so that a crash loses no trace."""

    def deletion(self, sweep: int) -> Deletion | None:
        """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
        table = schema.sweep
        with self._database.reading() as connection:
            head = sa.select(table.c.state, table.c.mlflow_experiment).where(table.c.id == sweep)
            row = connection.execute(head).one_or_none()
            if row is None:
                return None
            if row.state not in SWEEP_ENDED:
                raise ConflictError(f"sweep {sweep} is {row.state}; cancel it before it is deleted")
            uids = connection.execute(sa.select(training.c.uid).where(training.c.id.in_(_only_of(sweep)))).scalars()
            return Deletion(tuple(uids), row.mlflow_experiment)

    def delete_sweep(self, fence: int, sweep: int) -> None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to."""
        table = schema.sweep
        with self._database.writing(fence) as connection:
            ended = sa.select(table.c.id).where(table.c.id == sweep, table.c.state.in_(SWEEP_ENDED)).with_for_update()
            if connection.execute(ended).first() is None:
                return
            alone = list(connection.execute(_only_of(sweep)).scalars())
            for rows in (schema.outbox, schema.request, trial, schema.candidate, schema.cell):
                connection.execute(sa.delete(rows).where(rows.c.sweep_id == sweep))
            for chunk in chunked(alone, 1_000):
                attempts = sa.select(attempt.c.id).where(attempt.c.training_id.in_(chunk))
                for rows in (log, metric):
                    connection.execute(sa.delete(rows).where(rows.c.attempt_id.in_(attempts)))
                connection.execute(sa.delete(attempt).where(attempt.c.training_id.in_(chunk)))
                connection.execute(sa.delete(training).where(training.c.id.in_(chunk)))
            connection.execute(sa.delete(table).where(table.c.id == sweep))


def _only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that trials of this sweep point to and of no other."""
    other = trial.alias("other")
    shared = sa.exists().where(other.c.training_id == trial.c.training_id, other.c.sweep_id != sweep)
    return sa.select(trial.c.training_id).where(trial.c.sweep_id == sweep, ~shared).distinct()
