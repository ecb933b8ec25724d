"""Deleting a sweep with everything that only it uses."""

import sqlalchemy as sa

from orchestrator.lifecycle import SWEEP_ENDED
from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.places import only_of
from orchestrator.record.schema import attempt, log, metric, training, trial


class Deleting(Access):
    """The second half of a deletion: the files went before, by `Places.deletion`, so that a crash loses no trace."""

    def delete_sweep(self, fence: int, sweep: int) -> None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to."""
        table = schema.sweep
        with self._database.writing(fence) as connection:
            ended = sa.select(table.c.id).where(table.c.id == sweep, table.c.state.in_(SWEEP_ENDED)).with_for_update()
            if connection.execute(ended).first() is None:
                return
            alone = list(connection.execute(only_of(sweep)).scalars())
            for rows in (schema.outbox, schema.request, trial, schema.candidate, schema.cell):
                connection.execute(sa.delete(rows).where(rows.c.sweep_id == sweep))
            for chunk in chunked(alone, 1_000):
                attempts = sa.select(attempt.c.id).where(attempt.c.training_id.in_(chunk))
                for rows in (log, metric):
                    connection.execute(sa.delete(rows).where(rows.c.attempt_id.in_(attempts)))
                connection.execute(sa.delete(attempt).where(attempt.c.training_id.in_(chunk)))
                connection.execute(sa.delete(training).where(training.c.id.in_(chunk)))
            connection.execute(sa.delete(table).where(table.c.id == sweep))
