"""The outbox's other end: which marks are due, what was sent, and what is tried again later."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import mark_trials, mark_whole
from orchestrator.record.columns import MAX_MESSAGE, DatabaseSeconds, storable
from orchestrator.record.database import DELETE, Access, FencedAccess
from orchestrator.record.mirror_runs import RunKind
from orchestrator.record.schema import outbox, request

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


@dataclass(frozen=True, slots=True)
class DeletedSweep:
    """A deleted sweep whose experiment the tracker may still show."""

    id: int
    uid: str
    request: int  # by which it was deleted


class OutboxReader(Access):
    """Reads what is still to be told to the tracker."""

    def due(self, limit: int) -> list[Dirty]:
        """Marks that are due, those first that wait longest."""
        now = DatabaseSeconds()
        query = sa.select(outbox).where(sa.or_(outbox.c.next_try <= now, outbox.c.next_try > now + _FAR))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(outbox.c.next_try, outbox.c.id).limit(limit))
            return [Dirty(row.id, row.kind, row.sweep_id, row.entity, row.version, row.failures) for row in rows]

    def deleted(self) -> list[DeletedSweep]:
        """The deleted sweeps whose experiments the tracker has not removed yet."""
        query = sa.select(request).where(request.c.kind == DELETE, request.c.applied.is_not(None))
        with self._database.reading() as connection:
            rows = connection.execute(query.where(request.c.arguments.is_not(sa.null())).order_by(request.c.id))
            return [DeletedSweep(row.sweep_id, row.arguments["uid"], row.id) for row in rows]

    def lag(self, sweep: int | None = None) -> int:
        """How many runs, of a sweep or of all, the tracker does not show as they are."""
        query = sa.select(sa.func.count()).select_from(outbox)
        if sweep is not None:
            query = query.where(outbox.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def error(self, sweep: int | None = None) -> str | None:
        """Why a run, of a sweep or of any, could not be told when it was tried last; none: none failed."""
        query = sa.select(outbox.c.error).where(outbox.c.failures > 0)
        if sweep is not None:
            query = query.where(outbox.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return connection.execute(query.order_by(outbox.c.id).limit(1)).scalar_one_or_none()


class OutboxWriter(FencedAccess):
    """Writes what the tracker was told, and its ids of what it holds."""

    def sent(self, dirty: Dirty, run_id: str | None, last_point: int = 0) -> None:
        """The run shows what it was when it was read; `last_point` is the last metric row sent (0: none was).

        Where everything of the sweep was to be told anew meanwhile the mark is another one, and nothing is noted: what
        was sent may have gone to a tracker that has lost it.
        """
        mine = outbox.c.id == dirty.id
        with self._database.writing() as connection:
            if connection.execute(sa.select(outbox.c.id).where(mine)).first() is None:
                return
            if run_id is not None:
                _keep_run(connection, dirty, run_id, last_point)
            done = connection.execute(sa.delete(outbox).where(mine, outbox.c.version == dirty.version))
            if done.rowcount == 0:  # marked again meanwhile: at the end of the queue
                now = DatabaseSeconds()
                connection.execute(sa.update(outbox).where(mine).values(next_try=now, marked=now, failures=0))

    def removed(self, gone: DeletedSweep) -> None:
        """The tracker shows nothing of a deleted sweep any more."""
        with self._database.writing() as connection:
            connection.execute(sa.update(request).where(request.c.id == gone.request).values(arguments=None))

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

    def keep_parent(self, sweep: int, cell: int, run_id: str) -> None:
        """Note the tracker's id of a cell's run, and that the runs of its trials do not name it as their parent yet."""
        its = (schema.trial.c.sweep_id == sweep, schema.trial.c.cell == cell, schema.trial.c.mlflow_run.is_not(None))
        with self._database.writing() as connection:
            connection.execute(_of("cell", sweep, cell).values(mlflow_run=run_id))
            rows = connection.execute(sa.select(schema.trial.c.id).where(*its)).all()
            mark_trials(connection, [(sweep, row.id) for row in rows])

    def forget_run(self, dirty: Dirty) -> None:
        """Note that the tracker shows nothing of a run any more."""
        values: dict[str, Any] = {"mlflow_run": None}
        if dirty.kind == "trial":
            values["mlflow_point"] = 0
        with self._database.writing() as connection:
            connection.execute(_of(dirty.kind, dirty.sweep, dirty.entity).values(values))

    def tell_anew(self, sweep: int) -> int:
        """Forget what the tracker has of a sweep, and mark all of it: gives how many runs. Again changes nothing."""
        trial, cell = schema.trial, schema.cell
        shown = sa.or_(trial.c.started.is_not(None), trial.c.mlflow_left.is_not(None))
        begun = (trial.c.sweep_id == sweep, shown)
        with self._database.writing() as connection:
            forgotten: dict[str, Any] = {"mlflow_run": None}
            connection.execute(
                sa.update(schema.sweep).where(schema.sweep.c.id == sweep).values(mlflow_experiment=None, **forgotten)
            )
            connection.execute(sa.update(cell).where(cell.c.sweep_id == sweep).values(forgotten))
            connection.execute(sa.update(trial).where(trial.c.sweep_id == sweep).values(mlflow_point=0, **forgotten))
            connection.execute(sa.delete(outbox).where(outbox.c.sweep_id == sweep))  # see `sent`
            trials = connection.execute(sa.select(trial.c.id).where(*begun).order_by(trial.c.position)).all()
            cells = connection.execute(sa.select(trial.c.cell).where(*begun).distinct()).all()
            # The sweep last: only then is it looked for what is there twice.
            mark_whole(connection, sweep, [row.id for row in trials], [row.cell for row in cells])
            return len(trials) + len(cells) + 1

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
