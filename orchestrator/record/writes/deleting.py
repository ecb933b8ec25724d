"""Deleting a sweep with everything that only it uses."""

from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.trial_keys import only_of
from orchestrator.record.schema import attempt, log, metric, training, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.lifecycle import SWEEP_ENDED


class Deleting(Access):
    """The second half of a deletion: the files went before, by `Places.deletion`, so that a crash loses no trace."""

    def delete_sweep(self, fence: int, sweep: int, by: int | None = None, outcome: str = "deleted") -> str | None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to.

        Its requests stay, to say what became of them, without the specs that they carried; `by` is the one that is done
        with this, whose outcome is noted. Gives the tracker's id of its experiment, which may have been made after the
        deletion began. Raises NotFoundError, and ConflictError for a sweep that goes on.
        """
        table = schema.sweep
        with self._database.writing(fence) as connection:
            require_sweep(connection, sweep)
            ended = sa.select(table.c.mlflow_experiment).where(table.c.id == sweep, table.c.state.in_(SWEEP_ENDED))
            row = connection.execute(ended.with_for_update()).first()
            if row is None:
                raise ConflictError(f"sweep {sweep} goes on; cancel it before it is deleted")
            alone = list(connection.execute(only_of(sweep)).scalars())
            requests = sa.update(schema.request).where(schema.request.c.sweep_id == sweep)
            connection.execute(requests.values(arguments=None))
            done = requests.where(schema.request.c.id == by, schema.request.c.applied.is_(None))
            connection.execute(done.values(applied=datetime.now(UTC), outcome=outcome))
            for rows in (schema.outbox, trial, schema.candidate, schema.cell, schema.sweep_need):
                connection.execute(sa.delete(rows).where(rows.c.sweep_id == sweep))
            for chunk in chunked(alone, 1_000):
                attempts = sa.select(attempt.c.id).where(attempt.c.training_id.in_(chunk))
                for rows in (log, metric):
                    connection.execute(sa.delete(rows).where(rows.c.attempt_id.in_(attempts)))
                connection.execute(sa.delete(attempt).where(attempt.c.training_id.in_(chunk)))
                connection.execute(sa.delete(training).where(training.c.id.in_(chunk)))
            connection.execute(sa.delete(table).where(table.c.id == sweep))
            experiment: str | None = row.mlflow_experiment
            return experiment
