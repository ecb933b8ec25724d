"""The outbox of MLflow: which runs are outdated and due, what was sent, and what is tried again later."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from orchestrator.record.changes import mark_trials, mark_whole
from orchestrator.record.columns import DatabaseSeconds, shortened
from orchestrator.record.database import DELETE, Access, FencedAccess
from orchestrator.record.mirror_runs import RunKind, row_of
from orchestrator.record.schema import cell as cells
from orchestrator.record.schema import outbox, request
from orchestrator.record.schema import sweep as sweeps
from orchestrator.record.schema import trial as trials
from orchestrator.views.operations import Backlog

_FAR = 600.0
"""Seconds, more than any pause: a mark due later is from before the database's clock was set back."""


@dataclass(frozen=True, slots=True)
class Dirty:
    """An MLflow run that does not show the present state of its sweep, cell or trial."""

    id: int
    kind: str  # trial, cell or sweep
    sweep: int
    entity: int  # trial id, cell index, or sweep id
    version: int  # of the mark when it was read: a later one must not be deleted
    failures: int


@dataclass(frozen=True, slots=True)
class DeletedSweep:
    """A deleted sweep whose MLflow experiment may still exist."""

    id: int
    uid: str
    request: int  # that deleted it


class OutboxReader(Access):
    """Reads which MLflow runs are outdated."""

    def due(self, limit: int) -> list[Dirty]:
        """The outdated MLflow runs that are to be sent now, the longest waiting first."""
        now = DatabaseSeconds()
        query = sa.select(outbox).where(sa.or_(outbox.c.next_try <= now, outbox.c.next_try > now + _FAR))
        rows = self._rows(query.order_by(outbox.c.next_try, outbox.c.id).limit(limit))
        return [Dirty(row.id, row.kind, row.sweep_id, row.entity, row.version, row.failures) for row in rows]

    def deleted(self) -> list[DeletedSweep]:
        """The deleted sweeps whose MLflow experiments were not removed yet."""
        query = sa.select(request).where(request.c.kind == DELETE, request.c.applied.is_not(None))
        rows = self._rows(query.where(request.c.arguments.is_not(sa.null())).order_by(request.c.id))
        return [DeletedSweep(row.sweep_id, row.arguments["uid"], row.id) for row in rows]

    def backlog(self, sweep: int | None = None) -> Backlog:
        """The numbers of outdated MLflow runs, of a sweep or of all, with the latest error."""
        its = () if sweep is None else (outbox.c.sweep_id == sweep,)
        age = (DatabaseSeconds() - sa.func.min(outbox.c.marked)).label("age")
        failing = sa.func.count(sa.case((outbox.c.failures > 0, 1), else_=None)).label("failing")
        query = sa.select(sa.func.count(outbox.c.id).label("n"), age, failing).where(*its)
        error = sa.select(outbox.c.error).where(outbox.c.failures > 0, *its).order_by(outbox.c.id).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(query).one()
            message = connection.scalar(error) if row.failing else None
        return Backlog(row.n, max(0.0, float(row.age or 0.0)), row.failing, message)

    def lag(self, sweep: int | None = None) -> int:
        """The number of MLflow runs, of a sweep or of all, that do not show their present state."""
        return self.backlog(sweep).runs


class OutboxWriter(FencedAccess):
    """Records which runs were sent to MLflow, and the ids that MLflow gave them."""

    def sent(self, dirty: Dirty, run_id: str | None, last_point: int = 0) -> None:
        """Record that a run was sent to MLflow; `last_point` is the last row of its curve sent, 0 if none was.

        Nothing is recorded if the whole sweep was marked to be sent again meanwhile: MLflow may have lost the run.
        """
        mine = outbox.c.id == dirty.id
        with self._database.writing() as connection:
            if connection.execute(sa.select(outbox.c.id).where(mine)).first() is None:
                return
            if run_id is not None:
                _keep_run(connection, dirty, run_id, last_point)
            done = connection.execute(sa.delete(outbox).where(mine, outbox.c.version == dirty.version))
            if done.rowcount == 0:  # marked again meanwhile: move it to the end of the queue
                now = DatabaseSeconds()
                connection.execute(sa.update(outbox).where(mine).values(next_try=now, marked=now, failures=0))

    def removed(self, gone: DeletedSweep) -> None:
        """Record that the MLflow experiment of a deleted sweep was removed."""
        with self._database.writing() as connection:
            connection.execute(sa.update(request).where(request.c.id == gone.request).values(arguments=None))

    def postpone(self, dirty: Dirty, error: str, seconds: float) -> None:
        """Record that sending a run to MLflow failed; it is tried again in `seconds`."""
        later = {"next_try": DatabaseSeconds() + seconds, "failures": outbox.c.failures + 1, "error": shortened(error)}
        with self._database.writing() as connection:
            connection.execute(sa.update(outbox).where(outbox.c.id == dirty.id).values(**later))

    def keep_experiment(self, sweep: int, experiment: str) -> bool:
        """Record the id of a sweep's MLflow experiment; False if the sweep was deleted meanwhile."""
        with self._database.writing() as connection:
            noting = sa.update(sweeps).where(sweeps.c.id == sweep).values(mlflow_experiment=experiment)
            return connection.execute(noting).rowcount > 0

    def keep_parent(self, sweep: int, cell: int, run_id: str) -> None:
        """Record the id of a cell's MLflow run, and mark the runs of its trials, which have to name it as parent."""
        its = (trials.c.sweep_id == sweep, trials.c.cell == cell, trials.c.mlflow_run.is_not(None))
        with self._database.writing() as connection:
            connection.execute(_of("cell", sweep, cell).values(mlflow_run=run_id))
            rows = connection.execute(sa.select(trials.c.id).where(*its)).all()
            mark_trials(connection, [(sweep, row.id) for row in rows])

    def forget_run(self, dirty: Dirty) -> None:
        """Record that MLflow no longer has a run."""
        values: dict[str, Any] = {"mlflow_run": None}
        if dirty.kind == "trial":
            values["mlflow_point"] = 0
        with self._database.writing() as connection:
            connection.execute(_of(dirty.kind, dirty.sweep, dirty.entity).values(values))

    def mirror_again(self, sweep: int) -> int:
        """Mark all MLflow runs of a sweep to be sent again, with new ids; returns their number. Idempotent."""
        shown = sa.or_(trials.c.started.is_not(None), trials.c.mlflow_left.is_not(None))
        begun = (trials.c.sweep_id == sweep, shown)
        itself, its_cells = sweeps.c.id == sweep, cells.c.sweep_id == sweep
        with self._database.writing() as connection:
            connection.execute(sa.update(sweeps).where(itself).values(mlflow_experiment=None, mlflow_run=None))
            connection.execute(sa.update(cells).where(its_cells).values(mlflow_run=None))
            its_trials = sa.update(trials).where(trials.c.sweep_id == sweep)
            connection.execute(its_trials.values(mlflow_point=0, mlflow_run=None))
            connection.execute(sa.delete(outbox).where(outbox.c.sweep_id == sweep))  # see `sent`
            ids = connection.scalars(sa.select(trials.c.id).where(*begun).order_by(trials.c.position)).all()
            indices = connection.scalars(sa.select(trials.c.cell).where(*begun).distinct()).all()
            # The sweep is last: with it, duplicate runs are removed.
            mark_whole(connection, sweep, [*ids], [*indices])
            return len(ids) + len(indices) + 1

    def keep_run(self, kind: RunKind, sweep: int, entity: int, run_id: str) -> None:
        """Record the id of the MLflow run of a sweep, cell or trial."""
        with self._database.writing() as connection:
            connection.execute(_of(kind, sweep, entity).values(mlflow_run=run_id))

    def forget_left(self, trial: int, run_id: str) -> None:
        """Record that MLflow has ended the former run of a trial that was planned anew."""
        with self._database.writing() as connection:
            mine = sa.update(trials).where(trials.c.id == trial, trials.c.mlflow_left == run_id)
            connection.execute(mine.values(mlflow_left=None))


def _of(kind: str, sweep: int, entity: int) -> sa.Update:
    table, its = row_of(kind, sweep, entity)
    return sa.update(table).where(its)


def _keep_run(connection: sa.Connection, dirty: Dirty, run_id: str, last_point: int) -> None:
    values: dict[str, Any] = {"mlflow_run": run_id}
    if dirty.kind == "trial" and last_point:
        values["mlflow_point"] = last_point
    keeping = _of(dirty.kind, dirty.sweep, dirty.entity).values(values)
    if dirty.kind == "trial":  # it may have been planned anew while its old run was sent
        left = trials.c.mlflow_left
        keeping = keeping.where(sa.or_(left.is_(None), left != run_id))
    connection.execute(keeping)
