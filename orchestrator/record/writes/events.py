"""Writes what happened to attempts, cells and sweeps: each event in one transaction, and a second time in vain."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_key, shape_of
from orchestrator.record.database import FencedAccess
from orchestrator.record.json_floats import dump_result, finite_or_none, selection_score
from orchestrator.record.schema import attempt, cell, training, trial
from orchestrator.record.writes import evaluations
from orchestrator.record.writes.changes import note_progress, note_stalled, note_trials
from orchestrator.record.writes.deliveries import tell_stalled
from orchestrator.record.writes.dirty_flags import MAY_BE_SHOWN, REST_SECONDS, mark_cell, mark_sweep, mark_trials
from orchestrator.record.writes.progress import WRITTEN_LAST, append_log, append_points, write_log
from orchestrator.record.writes.pruning import unwanted
from orchestrator.record.writes.text import MAX_MESSAGE, storable
from orchestrator.record.writes.trial_places import take_result
from orchestrator.record.writes.trials import end_sweep, is_wanted
from orchestrator.views.runs import (
    AttemptStopped,
    CellSettled,
    Event,
    Failed,
    FailureKind,
    Finished,
    Progressed,
    Started,
    SweepSettled,
    origin_of,
)
from orchestrator.views.states import TRIAL_ACTIVE, TRIAL_STEPS, TrialState, before
from workers.contract import Result

MAX_TRACE: Final = 65_536
"""Characters of the end of a failure's traceback."""
# Made once, since every training has them all; to build one takes longer than the database does.
_RUNNING: Final = (
    sa.select(attempt).where(attempt.c.uid == sa.bindparam("named"), attempt.c.state == "running").with_for_update()
)
_ATTEMPT: Final = sa.update(attempt).where(attempt.c.id == sa.bindparam("mine"))
_BEGUN: Final = _ATTEMPT.values(
    begun=sa.func.coalesce(attempt.c.begun, sa.bindparam("now", type_=attempt.c.begun.type))
)
_TRAINING: Final = sa.update(training).where(training.c.id == sa.bindparam("mine"))
_TRAINING_MOVES: Final = _TRAINING.where(training.c.state.in_(sa.bindparam("left", expanding=True)))
_TRIALS_MOVE: Final = (
    sa.update(trial)
    .where(trial.c.training_id == sa.bindparam("mine"), trial.c.state.in_(TRIAL_ACTIVE))
    .returning(trial.c.sweep_id, trial.c.id)
)
_EVALUATED: Final = sa.select(trial.c.sweep_id, trial.c.id).where(trial.c.evaluation_id == sa.bindparam("mine"))
_ACTIVE: Final = sa.select(trial.c.sweep_id, trial.c.id).where(
    trial.c.training_id == sa.bindparam("mine"), trial.c.state.in_(TRIAL_ACTIVE)
)
_ASKED: Final = sa.select(training.c.recipe, training.c.source).where(training.c.id == sa.bindparam("mine"))


class EventWriter(FencedAccess):
    """The one place where events become rows."""

    def write(self, event: Event) -> None:
        """Write an event and its outbox marks; raises FencedError. An event of an ended attempt changes nothing."""
        with self._database.writing() as connection:
            match event:
                case CellSettled():
                    self._cell_settled(connection, event)
                case SweepSettled():
                    if state := end_sweep(connection, event.sweep):
                        mark_sweep(connection, event.sweep, state)
                case _:
                    self._of_attempt(connection, event)

    def _of_attempt(
        self, connection: sa.Connection, event: Started | Progressed | Finished | Failed | AttemptStopped
    ) -> None:
        running = connection.execute(_RUNNING, {"named": event.attempt}).one_or_none()
        if running is None:
            return
        match event:
            case Started():
                held = {"holder": event.holder, "host": event.host, "fence": self._database.fence}
                connection.execute(_BEGUN, {"mine": running.id, "now": datetime.now(UTC), **held})
                self._mark_active(connection, running.training_id)
            case Progressed():
                self._progressed(connection, running, event)
            case Finished():
                self._finished(connection, running, event)
            case Failed():
                self._failed(connection, running, event)
            case AttemptStopped():
                _end_attempt(connection, running.id, "stopped", event.reason)
                wanted = is_wanted(connection, running.training_id)
                state = TrialState.WAITING if wanted else unwanted(connection, running.training_id)
                self._move(connection, running.training_id, state, {})

    def _progressed(self, connection: sa.Connection, running: sa.Row[Any], event: Progressed) -> None:
        if event.seq <= running.seen:
            return
        progress = event.progress
        append_points(connection, running.id, event.seq, progress)
        values: dict[str, Any] = {"seen": event.seq}
        if progress.checkpoint is not None:
            values["checkpoint"] = progress.checkpoint
        if progress.log:
            values["log_bytes"] = append_log(connection, running, event.seq, progress.log)
        connection.execute(_ATTEMPT, {"mine": running.id, **values})
        reached = {"step": progress.step, "total_steps": progress.total}
        connection.execute(_TRAINING, {"mine": running.training_id, **reached})
        came_further = note_progress(connection, running.training_id)
        if progress.metrics:
            mark_trials(connection, came_further, REST_SECONDS)

    def _finished(self, connection: sa.Connection, running: sa.Row[Any], event: Finished) -> None:
        result = event.result
        _end_attempt(connection, running.id, "finished", None)
        row = connection.execute(_ASKED, {"mine": running.training_id}).one()
        values = _trained(row.recipe or {}, result)
        if row.source is not None:
            values = evaluations.completed(connection, row.source, result)
        self._move(connection, running.training_id, TrialState.FINISHED, values)
        evaluations.move(connection, [running.training_id])

    def _failed(self, connection: sa.Connection, running: sa.Row[Any], event: Failed) -> None:
        failure = event.failure
        message = storable(failure.message)[:MAX_MESSAGE]
        ending = "lost" if failure.kind in ("infrastructure", "stalled") else "failed"
        _end_attempt(connection, running.id, ending, message, failure.kind)
        if failure.kind == "stalled":
            stalled = _active(connection, running.training_id)
            note_stalled(connection, stalled)
            tell_stalled(connection, stalled, message)
        wanted = is_wanted(connection, running.training_id)
        if failure.kind == "kept_weights" and evaluations.train_instead(connection, running.training_id):
            note = f"{message}; training in place of that\n"
            write_log(connection, running.training_id, running.id, WRITTEN_LAST, note)
            self._move(connection, running.training_id, TrialState.WAITING, {})
        elif not event.requeue:
            values = {"error": message, "trace": storable(failure.trace)[-MAX_TRACE:]}
            self._move(connection, running.training_id, TrialState.FAILED, values)
        else:
            state = TrialState.WAITING if wanted else unwanted(connection, running.training_id)
            self._move(connection, running.training_id, state, {})

    def _move(self, connection: sa.Connection, training_id: int, state: TrialState, values: dict[str, Any]) -> None:
        """A training and its active trials enter a state together; trials that ended by themselves stay as they are."""
        now = datetime.now(UTC)
        ended = None if state is TrialState.WAITING else now
        entered = {"mine": training_id, "state": state, "ended": ended}
        connection.execute(_TRAINING_MOVES, {**entered, "left": [*before(TRIAL_STEPS, state)], **values})
        waiting = connection.execute(_EVALUATED, {"mine": training_id}).all()
        mark_trials(connection, [(row.sweep_id, row.id) for row in waiting])
        moved = connection.execute(_TRIALS_MOVE, {**entered, "diverged": bool(values.get("diverged", False))}).all()
        mark_trials(connection, [(row.sweep_id, row.id) for row in moved])
        note_trials(connection, [(row.sweep_id, row.id) for row in moved])
        if state is TrialState.FINISHED:
            for sweep in sorted({row.sweep_id for row in moved}):
                take_result(connection, sweep, [row.id for row in moved if row.sweep_id == sweep], values)

    def _mark_active(self, connection: sa.Connection, training_id: int) -> None:
        mark_trials(connection, _active(connection, training_id), REST_SECONDS)

    def _cell_settled(self, connection: sa.Connection, event: CellSettled) -> None:
        summary = event.summary
        its_trials = sa.and_(trial.c.sweep_id == event.sweep, trial.c.cell == summary.cell)
        if connection.execute(
            sa.select(trial.c.id).where(its_trials, trial.c.state.in_(TRIAL_ACTIVE)).limit(1)
        ).first():
            return  # retried meanwhile: it is settled again later
        changed = connection.execute(
            sa.update(cell)
            .where(cell.c.sweep_id == event.sweep, cell.c.cell == summary.cell)
            .where(cell.c.settled.is_(None))
            .values(summary=asdict(summary), settled=datetime.now(UTC))
        )
        if changed.rowcount == 0:
            return
        mark_cell(connection, event.sweep, summary.cell)
        mark_sweep(connection, event.sweep)
        # Their runs carry a tag that says whether their candidate was selected.
        chosen = sa.select(trial.c.id).where(
            its_trials,
            sa.or_(trial.c.candidate == summary.candidate, MAY_BE_SHOWN)
            if summary.candidate is not None
            else sa.false(),
        )
        mark_trials(connection, [(event.sweep, row.id) for row in connection.execute(chosen).all()])


def _trained(recipe: Mapping[str, Any], result: Result) -> dict[str, Any]:
    return {
        "diverged": result.outcome == "diverged",
        "shape": None if result.outcome == "diverged" else shape_key(shape_of(recipe)),
        "metrics": {key: finite_or_none(value) for key, value in result.metrics.items()},
        "score": selection_score(recipe, result.metrics),
        "best_step": result.best_step,
        "seconds": result.seconds,
        "result": dump_result(result),
        "origin": origin_of(result.provenance),
        "step": result.steps,
    }


def _active(connection: sa.Connection, training_id: int) -> list[tuple[int, int]]:
    """The active trials of a training, as (sweep, trial)."""
    return [(row.sweep_id, row.id) for row in connection.execute(_ACTIVE, {"mine": training_id})]


def _end_attempt(
    connection: sa.Connection, attempt_id: int, state: str, reason: str | None, cause: FailureKind | None = None
) -> None:
    values = {"state": state, "reason": reason, "cause": cause, "ended": datetime.now(UTC)}
    connection.execute(_ATTEMPT, {"mine": attempt_id, **values})
