"""A sweep's life, as the conductor writes it: it starts, grows, takes its turn, and is deleted."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.clock import UtcTime
from orchestrator.record.database import FencedAccess, chunked
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.deletion import only_of
from orchestrator.record.reads.wanting import evaluation_left
from orchestrator.record.schema import attempt, candidate, cell, log, metric, past_attempt, resolution, training, trial
from orchestrator.record.writes import evaluations
from orchestrator.record.writes.changes import note
from orchestrator.record.writes.dirty_flags import mark_cell, mark_sweep
from orchestrator.record.writes.lease import extend
from orchestrator.record.writes.looks import note_look
from orchestrator.record.writes.pruning import prune_added
from orchestrator.record.writes.text import MAX_MESSAGE, storable
from orchestrator.record.writes.trial_rows import TrialRows, insert
from orchestrator.record.writes.trials import RETRIED_ALL, cancel_trials, retry_trials
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Candidate, Cell, ChangeKind, Extension, PlannedTrial
from orchestrator.views.states import SWEEP_ENDED, SWEEP_STEPS, TRIAL_ACTIVE, SweepState, before


class SweepRows:
    """Appends to what is written of a sweep; a `fresh` one shares no training but with itself."""

    def __init__(self, connection: sa.Connection, sweep: int, uid: uuid.UUID, fresh: bool) -> None:
        self._connection, self._sweep, self._uid, self._fresh = connection, sweep, uid, fresh

    def write(self, cells: Iterable[Cell], candidates: Sequence[Candidate], trials: Iterable[PlannedTrial]) -> None:
        """Write them in their order, which is that of the plan.

        Cells are open where the sweep has no candidates at all: a search adds them later.
        """
        sweep, position = self._sweep, sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
        first = self._connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
        later = first == 0 and not candidates
        insert(
            self._connection, cell,
            ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels), "open": later} for one in cells),
        )  # fmt: skip
        insert(self._connection, candidate, rows_of(sweep, candidates))
        TrialRows(self._connection, sweep, self._uid, self._fresh, first, whole=True).write(trials)


def rows_of(sweep: int, added: Iterable[Candidate]) -> Iterable[dict[str, object]]:
    """Those of candidates."""
    return ({"sweep_id": sweep, "cell": one.cell, "candidate": one.index, "labels": dict(one.labels)} for one in added)


# Made once, since it is asked at every turn.
_ITS = trial.c.sweep_id == schema.sweep.c.id
_LEFT = (
    sa.exists().where(_ITS, trial.c.state.in_(TRIAL_ACTIVE)),
    sa.exists().where(cell.c.sweep_id == schema.sweep.c.id, cell.c.open),
    sa.exists().where(_ITS, evaluation_left()),
)
_UNSETTLED = (
    sa.select(schema.sweep.c.id)
    .where(schema.sweep.c.state == SweepState.RUNNING, *(~one for one in _LEFT))
    .order_by(schema.sweep.c.id)
)


class SweepWriter(FencedAccess):
    """Writes sweeps."""

    def prepare(
        self,
        sweep: int,
        cells: Sequence[Cell],
        candidates: Sequence[Candidate],
        trials: Sequence[PlannedTrial],
        fresh: bool,
    ) -> None:
        """Write the next rows of a queued sweep, which nobody is shown and nothing is begun of before it starts.

        Raises ConflictError once it is not queued any more.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            mine = sa.select(table.c.uid).where(table.c.id == sweep, table.c.state == SweepState.QUEUED)
            uid = _queued(sweep, connection.execute(mine).scalar_one_or_none())
            SweepRows(connection, sweep, uid, fresh).write(cells, candidates, trials)
            extend(connection)

    def start(
        self,
        sweep: int,
        cells: Sequence[Cell],
        candidates: Sequence[Candidate],
        trials: Iterable[PlannedTrial],
        slot: Slot,
        fresh: bool,
    ) -> None:
        """Write the last rows of a queued sweep; finished trainings are reused at once unless it asks for fresh ones.

        Cells of a sweep without candidates are open: a search adds them later.
        """
        with self._database.writing() as connection:
            uid = _enter_running(connection, sweep, slot, datetime.now(UTC))
            SweepRows(connection, sweep, uid, fresh).write(cells, candidates, trials)
            mark_sweep(connection, sweep, SweepState.RUNNING)
            extend(connection)

    def extend(self, sweep: int, wider: Extension, by: int | None = None) -> None:
        """Write the added rows and let the sweep go on; finished trainings are reused at once.

        The request that it is done for, `by`, keeps where they begin and how many trials had finished by then.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            columns = (table.c.uid, table.c.state, table.c.started)
            row = connection.execute(sa.select(*columns).where(table.c.id == sweep)).one()
            if row.started is None:  # it ended before all of its trials were written: those that are wait as well
                retry_trials(connection, sweep, RETRIED_ALL, None, None)
            insert(
                connection, cell,
                ({"sweep_id": sweep, "cell": one.index, "labels": dict(one.labels)} for one in wider.cells),
            )  # fmt: skip
            insert(connection, candidate, rows_of(sweep, wider.candidates))
            position = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1) + 1)
            first = connection.execute(position.where(trial.c.sweep_id == sweep)).scalar_one()
            if wider.trials and by is not None:
                note_look(connection, sweep, by, first)
            fresh = bool(wider.spec.get("fresh"))
            TrialRows(connection, sweep, uuid.UUID(row.uid), fresh, first).write(wider.trials)
            prune_added(connection, sweep, first)
            evaluations.measure(connection, sweep, fresh, wider.measured)
            touched = sorted({one.cell for one in wider.trials})
            connection.execute(
                sa.update(cell)
                .where(cell.c.sweep_id == sweep, cell.c.cell.in_(touched))
                .values(summary=None, settled=None)
            )
            values: dict[str, Any] = {"text": wider.text, "spec": dict(wider.spec), "total": wider.total}
            values["started"] = row.started or datetime.now(UTC)
            if "slot" in wider.spec:  # which holds for all that waits and has no slot of its own
                values["slot"] = wider.spec["slot"]
            if not wider.spec.get("slots"):  # it takes back what some trials had of their own
                connection.execute(
                    sa.update(trial).where(trial.c.sweep_id == sweep, trial.c.slot.is_not(None)).values(slot=None)
                )
            if row.state in before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED:
                values |= {"state": SweepState.RUNNING, "ended": None, "error": None}
            connection.execute(sa.update(table).where(table.c.id == sweep).values(**values))
            for index in touched:
                mark_cell(connection, sweep, index)
            mark_sweep(connection, sweep)
            extend(connection)

    def pause(self, sweep: int) -> bool:
        """Start nothing more of a running sweep; what trains goes on to its end. Whether that changed anything."""
        return self._turn(sweep, SweepState.RUNNING, SweepState.PAUSED)

    def resume(self, sweep: int) -> bool:
        """Let a paused sweep take its turn again; whether that changed anything."""
        return self._turn(sweep, SweepState.PAUSED, SweepState.RUNNING)

    def prioritize(self, sweep: int, priority: int) -> None:
        """Set a sweep's priority; of what already trains nothing is stopped for it."""
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            connection.execute(sa.update(table).where(table.c.id == sweep).values(priority=priority))
            mark_sweep(connection, sweep)

    def _turn(self, sweep: int, old: SweepState, new: SweepState) -> bool:
        if old not in before(SWEEP_STEPS, new):
            raise ValueError(f"{new} does not follow {old}")
        table = schema.sweep
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            moving = sa.update(table).where(table.c.id == sweep, table.c.state == old)
            moved = connection.execute(moving.values(state=new)).rowcount == 1
            if moved:
                mark_sweep(connection, sweep, new)
            return moved

    def fail(self, sweep: int, message: str) -> None:
        """End a sweep that cannot be run, with the reason; its active trials are cancelled."""
        table = schema.sweep
        with self._database.writing() as connection:
            cancel_trials(connection, sweep)
            evaluations.cancel(connection, sweep)
            connection.execute(sa.update(cell).where(cell.c.sweep_id == sweep, cell.c.open).values(open=False))
            failed = connection.execute(
                sa.update(table)
                .where(table.c.id == sweep, table.c.state.in_(before(SWEEP_STEPS, SweepState.FAILED)))
                .values(state=SweepState.FAILED, error=storable(message)[:MAX_MESSAGE], ended=datetime.now(UTC))
            )
            if failed.rowcount:
                mark_sweep(connection, sweep, SweepState.FAILED)

    def unsettled(self) -> list[int]:
        """Running sweeps whose trials, evaluations and searches have all ended; raises FencedError."""
        with self._database.holding() as connection:
            return list(connection.execute(_UNSETTLED).scalars())

    def delete(self, sweep: int, by: int | None = None, outcome: str = "deleted") -> None:
        """Delete an ended sweep's rows, and those of the trainings that no other sweep points to.

        Its requests stay, to say what became of them, without the specs that they carried; `by` is the one that is done
        with this. It keeps its outcome and, until the tracker has removed the sweep's experiment, the sweep's uid.
        Raises NotFoundError, and ConflictError for a sweep that goes on.
        """
        table = schema.sweep
        with self._database.writing() as connection:
            note(connection, ChangeKind.SWEEP, sweep, sweep)  # first: nobody remarks on what is just being deleted
            require_sweep(connection, sweep)
            head = sa.select(table.c.uid, table.c.mlflow_experiment)
            ended = head.where(table.c.id == sweep, table.c.state.in_(SWEEP_ENDED))
            row = connection.execute(ended.with_for_update()).first()
            if row is None:
                raise ConflictError(f"sweep {sweep} goes on; cancel it before it is deleted")
            alone = list(connection.execute(only_of(sweep)).scalars())
            requests = sa.update(schema.request).where(schema.request.c.sweep_id == sweep)
            connection.execute(requests.values(arguments=None))
            done = requests.where(schema.request.c.id == by, schema.request.c.applied.is_(None))
            shown = None if row.mlflow_experiment is None else {"uid": str(row.uid)}
            connection.execute(done.values(applied=datetime.now(UTC), outcome=outcome, arguments=shown))
            for rows in (
                schema.note, schema.tag, schema.trial_column, schema.outbox, trial,
                schema.candidate, schema.cell, schema.sweep_need, resolution,
            ):  # fmt: skip
                connection.execute(sa.delete(rows).where(rows.c.sweep_id == sweep))
            for chunk in chunked(alone, 1_000):
                attempts = sa.select(attempt.c.id).where(attempt.c.training_id.in_(chunk))
                connection.execute(_kept_use(chunk))
                for rows in (log, metric):
                    connection.execute(sa.delete(rows).where(rows.c.attempt_id.in_(attempts)))
                for rows in (schema.collected, attempt):
                    connection.execute(sa.delete(rows).where(rows.c.training_id.in_(chunk)))
                connection.execute(sa.delete(training).where(training.c.id.in_(chunk)))
            connection.execute(sa.delete(table).where(table.c.id == sweep))


def _enter_running(connection: sa.Connection, sweep: int, slot: Slot, now: datetime) -> uuid.UUID:
    table = schema.sweep
    uid = connection.execute(
        sa.update(table)
        .where(table.c.id == sweep, table.c.state == SweepState.QUEUED)
        .values(state=SweepState.RUNNING, started=now, slot=slot.model_dump(mode="json"))
        .returning(table.c.uid)
    ).scalar_one_or_none()
    return _queued(sweep, uid)


def _queued(sweep: int, uid: str | None) -> uuid.UUID:
    if uid is None:
        raise ConflictError(f"sweep {sweep} is not queued")
    return uuid.UUID(uid)


def _kept_use(trainings: Collection[Any]) -> sa.Insert:
    """What attempts that are deleted took of quotas stays counted: else whoever deletes has hours anew."""
    names = ("owner_id", "project_id", "cpus", "gpus", "begun", "ended")
    # One that never ended was a slot's until now; one without hours of anything is not counted anyway.
    ended = sa.func.coalesce(attempt.c.ended, sa.bindparam("now", datetime.now(UTC), UtcTime))
    columns = (*(attempt.c[name] for name in names[:-1]), ended)
    mine = (attempt.c.training_id.in_(trainings), attempt.c.begun.is_not(None), attempt.c.gpus.is_not(None))
    return sa.insert(past_attempt).from_select(names, sa.select(*columns).where(*mine))
