"""The runs of MLflow: what they show, their ids, and the outbox of those that are outdated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.changes import mark_trials, mark_whole
from orchestrator.record.columns import DatabaseSeconds, number, shortened
from orchestrator.record.database import DELETE, Access, FencedAccess, chunked, of_candidate, trials_by_state
from orchestrator.record.schema import attempt, candidate, cell, metric, outbox, request, training, trial
from orchestrator.record.trainings import with_source
from orchestrator.record.trials import first_trial
from orchestrator.views.operations import Backlog
from orchestrator.views.sweeps import SweepHead

RunKind = Literal["trial", "cell", "summary"]
LOSS: Final = "train/loss"
"""The key of the curve of the loss."""

_EARLIER_POINT, _EARLIER = metric.alias(), attempt.alias()
_PASSED = (  # whether an earlier attempt has reported the step
    sa.exists()
    .where(_EARLIER_POINT.c.attempt_id == _EARLIER.c.id, _EARLIER.c.training_id == attempt.c.training_id)
    .where(_EARLIER.c.number < attempt.c.number)
    .where(_EARLIER_POINT.c.key == metric.c.key, _EARLIER_POINT.c.step == metric.c.step)
)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value of a metric's curve, with the time when it was recorded; sending it again changes nothing."""

    key: str
    value: float
    step: int
    at: datetime


class SweepRun(SweepHead):
    """The data of a sweep that MLflow shows, in its experiment and its summary run."""

    actor: str | None
    error: str | None
    experiment: str | None
    run: str | None
    counts: Mapping[str, int]  # trials by state; read for the summary run only
    description: str = ""


@dataclass(frozen=True, slots=True)
class CellRun:
    """The data of a cell that MLflow shows, in the parent run of its trials."""

    sweep: SweepRun
    index: int
    labels: Mapping[str, str]
    summary: Mapping[str, Any] | None  # a CellSummary as JSON, once settled
    settled: datetime | None
    run: str | None
    # Read for its own run only:
    recipe: Mapping[str, Any] = field(default_factory=dict)  # of its first trial
    provenance: Mapping[str, Any] = field(default_factory=dict)  # of its first trial
    model: int | None = None  # the first finished trial of the chosen candidate
    points: tuple[CurvePoint, ...] = ()  # the curve of the loss of that trial


@dataclass(frozen=True, slots=True)
class TrialRun:
    """The data of a trial and its training that MLflow shows, in the trial's run."""

    cell: CellRun
    id: int
    uid: str
    candidate: int
    repeat: int
    candidate_labels: Mapping[str, str]
    repeat_labels: Mapping[str, str]
    state: str
    diverged: bool
    reused: bool
    started: datetime | None
    ended: datetime | None
    run: str | None
    left: str | None  # its run of older versions, if the tracker still has to end it
    training: str
    fingerprint: str
    recipe: Mapping[str, Any]
    metrics: Mapping[str, float]
    provenance: Mapping[str, Any]
    best_step: int | None
    seconds: float | None
    attempts: int
    error: str | None
    reason: str | None  # why it was pruned
    source: int | None  # if reused, the trial for which the training was run
    source_run: str | None
    points: tuple[CurvePoint, ...]  # those not sent before
    last_point: int  # the last metric row among them, or the last sent


class MirrorStateReader(Access):
    """Reads the data that MLflow has to show."""

    def sweep(self, sweep: int) -> SweepRun:
        """The data of a sweep for its MLflow experiment and summary run."""
        with self._database.reading() as connection:
            return _sweep_run(connection, sweep, trials_by_state(connection, sweep))

    def cell(self, sweep: int, index: int) -> CellRun:
        """The data of a cell for the MLflow run that is the parent of its trials."""
        columns = (trial.c.id, training.c.id.label("training"), training.c.recipe, training.c.result)
        of_cell = sa.select(*columns).join(trial, trial.c.training_id == training.c.id)
        of_cell = of_cell.where(trial.c.sweep_id == sweep, trial.c.cell == index).order_by(trial.c.position).limit(1)
        with self._database.reading() as connection:
            cell = _cell_run(connection, sweep, index)
            if (first := connection.execute(of_cell).one_or_none()) is None:
                return cell
            cell = replace(cell, recipe=first.recipe, provenance=(first.result or {}).get("provenance") or {})
            chosen = (trial.c.candidate == (cell.summary or {}).get("candidate"), trial.c.state == "finished")
            model = connection.execute(of_cell.where(*chosen)).one_or_none()
            if model is None:
                return cell
            points, _ = _points(connection, model.training, 0, LOSS)
            return replace(cell, model=model.id, points=points)

    def trial(self, trial: int) -> TrialRun:
        """The data of a trial for its MLflow run, with the points of curves that were not sent yet."""
        with self._database.reading() as connection:
            return _trial_run(connection, trial)


class RunReader(Access):
    """Reads the ids of MLflow experiments and runs."""

    def experiment(self, sweep: int) -> str | None:
        """The id of a sweep's MLflow experiment, or `None`."""
        query = sa.select(schema.sweep.c.mlflow_experiment).where(schema.sweep.c.id == sweep)
        experiment: str | None = self._scalar(query)
        return experiment

    def by_key(self, sweep: int, keys: Iterable[str]) -> dict[str, str]:
        """The ids of MLflow runs of a sweep, by the key that each run has as a tag."""
        own = schema.sweep
        of_trials = sa.select(trial.c.uid, trial.c.mlflow_run).where(trial.c.sweep_id == sweep)
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            head = connection.execute(sa.select(own.c.uid, own.c.mlflow_run).where(own.c.id == sweep)).one()
            for chunk in chunked([key for key in keys if "/" not in key], 500):
                rows = connection.execute(of_trials.where(trial.c.uid.in_(chunk)))
                found |= {row.uid: row.mlflow_run for row in rows if row.mlflow_run is not None}
            cells = connection.execute(sa.select(cell.c.cell, cell.c.mlflow_run).where(cell.c.sweep_id == sweep))
            found |= {f"{head.uid}/cell/{row.cell}": row.mlflow_run for row in cells if row.mlflow_run is not None}
        return found | ({f"{head.uid}/summary": head.mlflow_run} if head.mlflow_run is not None else {})

    def run(self, kind: RunKind, sweep: int, entity: int) -> str | None:
        """The id of the MLflow run of a trial (by id), a cell (by index) or a sweep's summary, or `None`."""
        table, its = row_of(kind, sweep, entity)
        run: str | None = self._scalar(sa.select(table.c.mlflow_run).where(its))
        return run

    def of_cells(self, sweep: int) -> dict[int, str]:
        """The ids of the MLflow runs of a sweep's cells, by the index of the cell."""
        rows = self._rows(sa.select(cell.c.cell, cell.c.mlflow_run).where(cell.c.sweep_id == sweep))
        return {row.cell: row.mlflow_run for row in rows if row.mlflow_run is not None}


def row_of(kind: str, sweep: int, entity: int) -> tuple[sa.Table, sa.ColumnElement[bool]]:
    """The table with a run of this kind (see `Dirty`), and the condition for its row."""
    if kind == "trial":
        return trial, trial.c.id == entity
    if kind == "cell":
        return cell, sa.and_(cell.c.sweep_id == sweep, cell.c.cell == entity)
    return schema.sweep, schema.sweep.c.id == sweep


def _sweep_run(connection: sa.Connection, sweep: int, counts: Mapping[str, int]) -> SweepRun:
    row = connection.execute(sa.select(schema.sweep).where(schema.sweep.c.id == sweep)).mappings().one()
    description = row["spec"].get("description") or ""
    its = {"experiment": row["mlflow_experiment"], "run": row["mlflow_run"], "description": description}
    return SweepRun.model_validate({**row, **its, "counts": counts})


def _cell_run(connection: sa.Connection, sweep: int, index: int) -> CellRun:
    row = connection.execute(sa.select(cell).where(cell.c.sweep_id == sweep, cell.c.cell == index)).one()
    of = _sweep_run(connection, sweep, {})
    return CellRun(of, row.cell, row.labels, row.summary, row.settled, row.mlflow_run)


def _trial_run(connection: sa.Connection, trial_id: int) -> TrialRun:
    columns = (
        training.c.uid.label("training_uid"), training.c.fingerprint, training.c.recipe, training.c.metrics,
        training.c.result, training.c.best_step, training.c.seconds, training.c.error,
        candidate.c.labels.label("candidate_labels"),
    )  # fmt: skip
    query = sa.select(trial, *columns).join(training, training.c.id == trial.c.training_id)
    row = connection.execute(query.join(candidate, of_candidate()).where(trial.c.id == trial_id)).one()
    attempts = sa.select(sa.func.count()).where(attempt.c.training_id == row.training_id)
    source = first_trial(connection, row.training_id) if row.reused else None
    source_run = sa.select(trial.c.mlflow_run).where(trial.c.id == source)
    points, last_point = ((), 0) if row.reused else _points(connection, row.training_id, row.mlflow_point)
    finished = row.state == "finished"
    return TrialRun(
        cell=_cell_run(connection, row.sweep_id, row.cell),
        id=row.id, uid=row.uid, candidate=row.candidate, repeat=row.repeat, candidate_labels=row.candidate_labels,
        repeat_labels=row.repeat_labels, state=row.state, diverged=row.diverged, reused=row.reused,
        started=row.started, ended=row.ended, run=row.mlflow_run, left=row.mlflow_left, training=row.training_uid,
        fingerprint=row.fingerprint, recipe=row.recipe,
        metrics={key: number(value) for key, value in (row.metrics or {}).items()} if finished else {},
        provenance=(row.result or {}).get("provenance") or {} if finished else {},
        best_step=row.best_step if finished else None, seconds=row.seconds if finished else None,
        attempts=int(connection.execute(attempts).scalar_one()),
        error=row.error if row.state == "failed" else None,
        reason=row.reason if row.state == "pruned" else None,
        source=source, source_run=connection.scalar(source_run),
        points=points, last_point=last_point,
    )  # fmt: skip


def _points(
    connection: sa.Connection, training_id: int, after: int, key: str | None = None
) -> tuple[tuple[CurvePoint, ...], int]:
    """Points recorded after the row `after`, of one key or all, without steps that an earlier attempt has reported."""
    query = (
        sa.select(metric, _PASSED.label("passed"))
        .join(attempt, attempt.c.id == metric.c.attempt_id)
        .where(attempt.c.training_id.in_(with_source(connection, training_id)), metric.c.id > after)
        .order_by(metric.c.id)
    )
    if key is not None:
        query = query.where(metric.c.key == key)
    rows = connection.execute(query).all()
    points = tuple(CurvePoint(row.key, number(row.value), row.step, row.at) for row in rows if not row.passed)
    return points, rows[-1].id if rows else after


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
            noting = sa.update(schema.sweep).where(schema.sweep.c.id == sweep).values(mlflow_experiment=experiment)
            return connection.execute(noting).rowcount > 0

    def keep_parent(self, sweep: int, cell: int, run_id: str) -> None:
        """Record the id of a cell's MLflow run, and mark the runs of its trials, which have to name it as parent."""
        its = (schema.trial.c.sweep_id == sweep, schema.trial.c.cell == cell, schema.trial.c.mlflow_run.is_not(None))
        with self._database.writing() as connection:
            connection.execute(_of("cell", sweep, cell).values(mlflow_run=run_id))
            rows = connection.execute(sa.select(schema.trial.c.id).where(*its)).all()
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
        shown = sa.or_(schema.trial.c.started.is_not(None), schema.trial.c.mlflow_left.is_not(None))
        begun = (schema.trial.c.sweep_id == sweep, shown)
        itself, its_cells = schema.sweep.c.id == sweep, schema.cell.c.sweep_id == sweep
        with self._database.writing() as connection:
            connection.execute(sa.update(schema.sweep).where(itself).values(mlflow_experiment=None, mlflow_run=None))
            connection.execute(sa.update(schema.cell).where(its_cells).values(mlflow_run=None))
            its_trials = sa.update(schema.trial).where(schema.trial.c.sweep_id == sweep)
            connection.execute(its_trials.values(mlflow_point=0, mlflow_run=None))
            connection.execute(sa.delete(outbox).where(outbox.c.sweep_id == sweep))  # see `sent`
            ids = connection.scalars(sa.select(schema.trial.c.id).where(*begun).order_by(schema.trial.c.position)).all()
            indices = connection.scalars(sa.select(schema.trial.c.cell).where(*begun).distinct()).all()
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
            mine = sa.update(schema.trial).where(schema.trial.c.id == trial, schema.trial.c.mlflow_left == run_id)
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
        left = schema.trial.c.mlflow_left
        keeping = keeping.where(sa.or_(left.is_(None), left != run_id))
    connection.execute(keeping)
