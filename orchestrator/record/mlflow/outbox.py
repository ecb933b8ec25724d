"""The outbox's other end: which marks are due, what was sent, and what is tried again later."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import Access, FencedAccess
from orchestrator.record.mlflow.runs import RunKind
from orchestrator.record.schema import outbox
from orchestrator.record.writes.text import MAX_MESSAGE, storable

_FAR = 600.0
"""Seconds beyond any pause: a mark due later than that is from before the database's clock was set back."""


@dataclass(frozen=True, slots=True)
class Dirty:
    """A run that the tracker does not show as it is."""

    id: int
    kind: str  # trial, cell or sweep
    sweep: int
    entity: int  # trial id, cell index, or sweep id
    version: int  # of the mark when it was read: a later one must not be deleted
    failures: int


class OutboxReader(Access):
    """Reads what is still to be told to the tracker."""

    def due(self, limit: int) -> list[Dirty]:
        """Marks that are due, those first that wait longest."""
        now = DatabaseSeconds()
        query = sa.select(outbox).where(sa.or_(outbox.c.next_try <= now, outbox.c.next_try > now + _FAR))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(outbox.c.next_try, outbox.c.id).limit(limit))
            return [Dirty(row.id, row.kind, row.sweep_id, row.entity, row.version, row.failures) for row in rows]

    def lag(self) -> int:
        """How many runs the tracker does not show as they are."""
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(outbox)).scalar_one())


class OutboxWriter(FencedAccess):
    """Writes what the tracker was told, and its ids of what it holds."""

    def sent(self, dirty: Dirty, run_id: str | None, last_point: int = 0) -> None:
        """The run shows what it was when it was read; `last_point` is the last metric row sent (0: none was)."""
        with self._database.writing() as connection:
            if run_id is not None:
                _keep_run(connection, dirty, run_id, last_point)
            mine = outbox.c.id == dirty.id
            done = connection.execute(sa.delete(outbox).where(mine, outbox.c.version == dirty.version))
            if done.rowcount == 0:  # marked again meanwhile: at the end of the queue
                now = DatabaseSeconds()
                connection.execute(sa.update(outbox).where(mine).values(next_try=now, marked=now, failures=0))

    def postpone(self, dirty: Dirty, error: str, seconds: float) -> None:
        """Try the mark again in `seconds`, and keep why."""
        later = {"next_try": DatabaseSeconds() + seconds, "failures": outbox.c.failures + 1}
        said = storable(error)[:MAX_MESSAGE]
        with self._database.writing() as connection:
            connection.execute(sa.update(outbox).where(outbox.c.id == dirty.id).values(error=said, **later))

    def keep_experiment(self, sweep: int, experiment: str) -> bool:
        """Note the tracker's id of a sweep's experiment; False where the sweep has been deleted meanwhile."""
        table = schema.sweep
        with self._database.writing() as connection:
            noting = sa.update(table).where(table.c.id == sweep).values(mlflow_experiment=experiment)
            return connection.execute(noting).rowcount > 0

    def keep_run(self, kind: RunKind, sweep: int, entity: int, run_id: str) -> None:
        """Note the tracker's id of a run."""
        with self._database.writing() as connection:
            connection.execute(_of(kind, sweep, entity).values(mlflow_run=run_id))

    def forget_left(self, trial: int, run_id: str) -> None:
        """Note that the tracker knows that a trial has left a run."""
        table = schema.trial
        with self._database.writing() as connection:
            mine = sa.update(table).where(table.c.id == trial, table.c.mlflow_left == run_id)
            connection.execute(mine.values(mlflow_left=None))


def _of(kind: str, sweep: int, entity: int) -> sa.Update:
    if kind == "trial":
        return sa.update(schema.trial).where(schema.trial.c.id == entity)
    if kind == "cell":
        return sa.update(schema.cell).where(schema.cell.c.sweep_id == sweep, schema.cell.c.cell == entity)
    return sa.update(schema.sweep).where(schema.sweep.c.id == sweep)


def _keep_run(connection: sa.Connection, dirty: Dirty, run_id: str, last_point: int) -> None:
    values: dict[str, Any] = {"mlflow_run": run_id}
    if dirty.kind == "trial" and last_point:
        values["mlflow_point"] = last_point
    keeping = _of(dirty.kind, dirty.sweep, dirty.entity).values(values)
    if dirty.kind == "trial":  # which may have been planned anew while its old run was told
        left = schema.trial.c.mlflow_left
        keeping = keeping.where(sa.or_(left.is_(None), left != run_id))
    connection.execute(keeping)
