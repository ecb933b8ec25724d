"""Writes events of attempts, cells and sweeps once; a repeated event changes nothing."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_key, shape_of
from orchestrator.record import schema, trial_rows
from orchestrator.record.attempts import WRITTEN_LAST, append_log, append_points, write_log
from orchestrator.record.changes import (
    REST_SECONDS,
    mark_cell,
    mark_sweep,
    mark_trials,
    note,
    note_progress,
    note_trials,
    queue_delivery_stalled,
    trials_changed,
)
from orchestrator.record.columns import dump_result, finite_or_none, selection_score, shortened, storable
from orchestrator.record.database import FencedAccess, chunked, of_candidate, require_sweep, trials_by_state
from orchestrator.record.queue import run_with_training
from orchestrator.record.schema import attempt, candidate, cell, training, trial
from orchestrator.record.schema import sweep as sweeps
from orchestrator.record.trainings import (
    ENDED_WITHOUT_RESULT,
    WAITING_AGAIN,
    evaluation_failed,
    evaluation_left,
    needed,
)
from orchestrator.record.trial_rows import end_unneeded, part_of, take_results, unsettle
from orchestrator.record.trials import first_trial, unexpanded
from orchestrator.views.runs import (
    AttemptStopped,
    CellSettled,
    ChangeKind,
    Event,
    Failed,
    FailureKind,
    Finished,
    Progressed,
    Started,
    SweepSettled,
    origin_of,
)
from orchestrator.views.states import (
    SWEEP_ENDED,
    SWEEP_STEPS,
    TRIAL_ACTIVE,
    TRIAL_STEPS,
    SweepState,
    TrialState,
    before,
)
from workers.contract import Result

_RETRIED = before(TRIAL_STEPS, TrialState.WAITING) - {TrialState.RUNNING}
_RETRIES: Final[Mapping[str, Collection[TrialState]]] = {
    "": (TrialState.FAILED, TrialState.CANCELLED),
    "failed": (TrialState.FAILED,),
    "all": ENDED_WITHOUT_RESULT,
}


_MAX_TRACE: Final = 65_536
"""Characters of a failure's traceback, from its end."""


class EventWriter(FencedAccess):
    """Writes events of attempts and cells, such as a result or an error, to the database."""

    def write(self, event: Event) -> None:
        """Write an event and mark the MLflow runs that it changes; raises FencedError.

        An event of an ended attempt changes nothing.
        """
        with self._database.writing() as connection:
            match event:
                case CellSettled():
                    self._cell_settled(connection, event)
                case SweepSettled():
                    if state := _end_sweep(connection, event.sweep):
                        mark_sweep(connection, event.sweep, state)
                case _:
                    self._of_attempt(connection, event)

    def _of_attempt(
        self, connection: sa.Connection, event: Started | Progressed | Finished | Failed | AttemptStopped
    ) -> None:
        named = sa.select(attempt).where(attempt.c.uid == event.attempt, attempt.c.state == "running")
        running = connection.execute(named.with_for_update()).one_or_none()
        if running is None:
            return
        match event:
            case Started():
                begun = sa.func.coalesce(attempt.c.begun, datetime.now(UTC))
                held = {"holder": event.holder, "host": event.host, "fence": self._database.fence}
                connection.execute(sa.update(attempt).where(attempt.c.id == running.id).values(begun=begun, **held))
                mark_trials(connection, _active(connection, running.training_id), REST_SECONDS)
            case Progressed():
                self._progressed(connection, running, event)
            case Finished():
                self._finished(connection, running, event)
            case Failed():
                self._failed(connection, running, event)
            case AttemptStopped():
                _end_attempt(connection, running.id, "stopped", event.reason)
                self._move(connection, running.training_id, _without_attempt(connection, running.training_id), {})

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
        connection.execute(sa.update(attempt).where(attempt.c.id == running.id).values(values))
        reached = {"step": progress.step, "total_steps": progress.total}
        connection.execute(sa.update(training).where(training.c.id == running.training_id).values(reached))
        came_further = note_progress(connection, running.training_id)
        if progress.metrics:
            mark_trials(connection, came_further, REST_SECONDS)

    def _finished(self, connection: sa.Connection, running: sa.Row[Any], event: Finished) -> None:
        result = event.result
        _end_attempt(connection, running.id, "finished", None)
        asked = sa.select(training.c.recipe, training.c.source).where(training.c.id == running.training_id)
        row = connection.execute(asked).one()
        values = _trained(row.recipe or {}, result)
        if row.source is not None:
            values = trial_rows.completed(connection, row.source, result)
        self._move(connection, running.training_id, TrialState.FINISHED, values)
        trial_rows.move(connection, [running.training_id])

    def _failed(self, connection: sa.Connection, running: sa.Row[Any], event: Failed) -> None:
        failure = event.failure
        message = shortened(failure.message)
        ending = "lost" if failure.kind in ("infrastructure", "stalled") else "failed"
        _end_attempt(connection, running.id, ending, message, failure.kind)
        if failure.kind == "stalled":
            stalled = _active(connection, running.training_id)
            for sweep, number in stalled:
                note(connection, ChangeKind.STALLED, sweep, number)
            queue_delivery_stalled(connection, stalled, message)
        state, values = _without_attempt(connection, running.training_id), dict[str, Any]()
        if failure.kind == "kept_weights" and trial_rows.train_instead(connection, running.training_id):
            line = f"{message}; training in place of that\n"
            write_log(connection, running.training_id, running.id, WRITTEN_LAST, line)
            state = TrialState.WAITING
        elif not event.requeue:
            state, values = TrialState.FAILED, {"error": message, "trace": storable(failure.trace)[-_MAX_TRACE:]}
        self._move(connection, running.training_id, state, values)

    def _move(self, connection: sa.Connection, training_id: int, state: TrialState, values: dict[str, Any]) -> None:
        """Set the state of a training and its active trials."""
        now = datetime.now(UTC)
        ended = None if state is TrialState.WAITING else now
        entered = {"state": state, "ended": ended}
        left = (training.c.id == training_id, training.c.state.in_(before(TRIAL_STEPS, state)))
        connection.execute(sa.update(training).where(*left).values(entered | values))
        evaluated = sa.select(trial.c.sweep_id, trial.c.id).where(trial.c.evaluation_id == training_id)
        mark_trials(connection, list(connection.execute(evaluated).tuples()))
        moved = connection.execute(
            sa.update(trial)
            .where(trial.c.training_id == training_id, trial.c.state.in_(TRIAL_ACTIVE))
            .values(entered | {"diverged": bool(values.get("diverged", False))})
            .returning(trial.c.sweep_id, trial.c.id)
        )
        trials = list(moved.tuples())
        trials_changed(connection, trials)
        if state is TrialState.FINISHED:
            take_results(connection, sorted(number for _, number in trials))

    def _cell_settled(self, connection: sa.Connection, event: CellSettled) -> None:
        summary = event.summary
        its_trials = sa.and_(trial.c.sweep_id == event.sweep, trial.c.cell == summary.cell)
        active = sa.select(trial.c.id).where(its_trials, trial.c.state.in_(TRIAL_ACTIVE)).limit(1)
        if connection.execute(active).first():
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
        if summary.candidate is not None:  # a tag of their runs says whether their candidate was selected
            shown = sa.or_(
                trial.c.candidate == summary.candidate, trial.c.started.is_not(None), trial.c.mlflow_run.is_not(None)
            )
            rows = connection.execute(sa.select(trial.c.sweep_id, trial.c.id).where(its_trials, shown)).tuples()
            mark_trials(connection, list(rows))


def _end_sweep(connection: sa.Connection, sweep: int) -> SweepState | None:
    """Set the final state of a running sweep whose trials have all ended, and return it; `None` if nothing changed."""
    states = trials_by_state(connection, sweep).keys()
    searched = sa.select(cell.c.cell).where(cell.c.sweep_id == sweep, cell.c.open).limit(1)
    any_trial = sa.select(trial.c.id).where(trial.c.sweep_id == sweep).limit(1)
    unfinished = (searched, any_trial.where(evaluation_left()))
    if states & TRIAL_ACTIVE or any(connection.execute(query).first() is not None for query in unfinished):
        return None
    state = SweepState.FINISHED
    if TrialState.FAILED in states or connection.execute(any_trial.where(evaluation_failed())).first() is not None:
        state = SweepState.FAILED
    elif TrialState.CANCELLED in states:
        state = SweepState.CANCELLED
    ended = connection.execute(
        sa.update(sweeps)
        .where(sweeps.c.id == sweep, sweeps.c.state == SweepState.RUNNING)
        .values(state=state, ended=datetime.now(UTC))
    )
    return state if ended.rowcount == 1 else None


def _end_attempt(
    connection: sa.Connection, attempt_id: int, state: str, reason: str | None, cause: FailureKind | None = None
) -> None:
    values = {"state": state, "reason": reason, "cause": cause, "ended": datetime.now(UTC)}
    connection.execute(sa.update(attempt).where(attempt.c.id == attempt_id).values(values))


def _without_attempt(connection: sa.Connection, training_id: int) -> TrialState:
    """The state of a training without an attempt: it waits if a trial wants it, or ends like the last trial that did.

    The trials of an evaluation that failed while it ran do not want it; they point to it for its error only.
    """
    its = sa.select(training.c.id).where(training.c.id == training_id, training.c.state.in_(TRIAL_ACTIVE))
    if connection.execute(its.where(needed(training_id))).first() is not None:
        return TrialState.WAITING
    ends = (TrialState.CANCELLED, TrialState.PRUNED)
    query = sa.select(trial.c.state).where(trial.c.training_id == training_id, trial.c.state.in_(ends))
    last = connection.scalar(query.order_by(trial.c.ended.desc(), trial.c.id.desc()).limit(1))
    return TrialState.CANCELLED if last is None else TrialState(last)


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
    its = sa.select(trial.c.sweep_id, trial.c.id).where(trial.c.training_id == training_id)
    return list(connection.execute(its.where(trial.c.state.in_(TRIAL_ACTIVE))).tuples())


@dataclass(frozen=True, slots=True)
class PruningDecision:
    """A decision to stop a candidate early, because of an evaluation of one of its trials."""

    sweep: int
    cell: int
    candidate: int
    trial: int
    number: int  # of the evaluation
    value: float
    why: str


class PruningWriter(FencedAccess):
    """Stops candidates early that cannot be selected."""

    def prune(self, decision: PruningDecision) -> int | None:
        """End a candidate's active trials as pruned; returns how many.

        Returns `None` without changes if no other candidate of the cell could be selected.
        """
        with self._database.writing() as connection:
            if connection.execute(_rival(decision)).first() is None:
                return None
            its = _judged(trial, decision)
            pruned = _end_trials(connection, decision.sweep, its, TrialState.PRUNED, _reason(decision))
            if pruned:
                connection.execute(
                    sa.update(candidate)
                    .where(*_judged(candidate, decision), candidate.c.score_event.is_(None))
                    .values(pruned=decision.number, score=finite_or_none(decision.value))
                )
            return pruned


def _end_trials(
    connection: sa.Connection,
    sweep: int,
    which: Iterable[sa.ColumnElement[bool]],
    state: TrialState,
    reason: str | sa.ColumnElement[str] | None = None,
) -> int:
    """End the active trials of a sweep that meet conditions, and unneeded trainings; returns how many trials."""
    ending = sa.update(trial).where(trial.c.sweep_id == sweep, *which, trial.c.state.in_(before(TRIAL_STEPS, state)))
    values = {"state": state, "ended": datetime.now(UTC)} | ({} if reason is None else {"reason": reason})
    columns = (trial.c.id, trial.c.training_id, trial.c.started, trial.c.mlflow_run)
    rows = connection.execute(ending.values(values).returning(*columns)).all()
    end_unneeded(connection, [row.training_id for row in rows], state)
    # MLflow may show a run of a trial that has begun before the run is recorded.
    mark_trials(connection, [(sweep, row.id) for row in rows if row.started is not None or row.mlflow_run is not None])
    note_trials(connection, [(sweep, row.id) for row in rows])
    return len(rows)


def _judged(table: sa.Table, decision: PruningDecision) -> tuple[sa.ColumnElement[bool], ...]:
    """The conditions for the candidate's row or its trials."""
    at = {"sweep_id": decision.sweep, "cell": decision.cell, "candidate": decision.candidate}
    return tuple(table.c[name] == value for name, value in at.items())


def _rival(decision: PruningDecision) -> sa.Select[tuple[int]]:
    """Another candidate of the cell that can still be selected."""
    scoreless = sa.exists().where(training.c.id == trial.c.training_id, training.c.score.is_(None))
    lost = sa.exists().where(
        of_candidate(),
        sa.or_(
            trial.c.state.in_(ENDED_WITHOUT_RESULT),
            trial.c.diverged,
            sa.and_(trial.c.state == TrialState.FINISHED, scoreless),  # its metric was not a number at the end
        ),
    )
    of_cell = (candidate.c.sweep_id == decision.sweep, candidate.c.cell == decision.cell)
    others = sa.select(candidate.c.candidate).where(*of_cell, candidate.c.candidate != decision.candidate)
    # From the last: in a grid it still waits, so that the first row is enough.
    return others.where(~lost).order_by(candidate.c.candidate.desc()).limit(1)


def _reason(decision: PruningDecision) -> sa.ColumnElement[str]:
    """The reason of the judged trial, or of those that share its candidate."""
    with_it = f"pruned with trial {decision.trial}, {decision.why}"
    return sa.case((trial.c.id == decision.trial, f"pruned {decision.why}"), else_=with_it)


def prune_added(connection: sa.Connection, sweep: int, position: int) -> None:
    """Prune the added repeats, from a position on, of candidates that were pruned before, which cannot be selected."""
    other = trial.alias()
    here = (other.c.sweep_id == trial.c.sweep_id, other.c.cell == trial.c.cell, other.c.candidate == trial.c.candidate)
    gone = sa.exists().where(*here, other.c.state == TrialState.PRUNED)
    spared = sa.exists().where(*here, other.c.reason.is_not(None), other.c.state != TrialState.PRUNED)
    reason = "pruned with its candidate, which had been pruned before this repeat was added"
    _end_trials(connection, sweep, (trial.c.position >= position, gone, ~spared), TrialState.PRUNED, reason)


class Touched(NamedTuple):
    """The numbers of trials and evaluations that a request has changed."""

    trials: int
    evaluations: int


class TrialWriter(FencedAccess):
    """Cancels and retries the trials of sweeps."""

    def cancel(self, sweep: int, trial: int | None = None, cell: int | None = None) -> Touched:
        """Cancel the active trials and evaluations of a sweep, a cell or a trial; finished trials stay."""
        cells = schema.cell
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            cancelled = cancel_trials(connection, sweep, trial, cell)
            if trial is None:
                closing = sa.update(cells).where(cells.c.sweep_id == sweep, cells.c.open).values(open=False)
                if cell is not None:
                    connection.execute(closing.where(cells.c.cell == cell))
                else:
                    self._end_cancelled(connection, sweep, cancelled.trials + connection.execute(closing).rowcount)
            return cancelled

    def _end_cancelled(self, connection: sa.Connection, sweep: int, cancelled: int) -> None:
        """End a cancelled sweep, unless its trials had all ended before: then it is settled as usual."""
        cancellable = [sweeps.c.id == sweep, sweeps.c.state.in_(before(SWEEP_STEPS, SweepState.CANCELLED))]
        if not cancelled:
            cancellable.append(sweeps.c.state != SweepState.RUNNING)
        ending = sa.update(sweeps).where(*cancellable)
        if connection.execute(ending.values(state=SweepState.CANCELLED, ended=datetime.now(UTC))).rowcount:
            mark_sweep(connection, sweep, SweepState.CANCELLED)

    def retry(self, sweep: int, trial: int | None = None, cell: int | None = None, what: str = "") -> Touched:
        """Let the failed trials and evaluations of a sweep, cell or trial wait again.

        A trial takes a result that another sweep's training has got meanwhile. `what`: `failed`, `all` (also pruned),
        or empty for failed and cancelled.
        """
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            if unexpanded(connection, sweep):  # its expansion continues, whatever part was requested
                return _expand_again(connection, sweep)
            retried = retry_trials(connection, sweep, _RETRIES[what], trial, cell)
            again_evaluated = trial_rows.retry(connection, sweep, trial, cell)
            again = sa.update(sweeps).where(sweeps.c.id == sweep)
            searched = trial is None and cell is None and _reopen(connection, sweep)
            if retried or again_evaluated or searched:
                # Only an ended sweep: a paused sweep stays paused.
                again = again.where(sweeps.c.state.in_(before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED))
                again = again.values(state=SweepState.RUNNING)
            elif trial is None and cell is None and _failed_at_its_end(connection, sweep):
                again = again.values(state=SweepState.RUNNING)  # to be settled once more
            else:
                return Touched(retried, again_evaluated)
            if connection.execute(again.values(ended=None, error=None)).rowcount:
                mark_sweep(connection, sweep)
            return Touched(retried, again_evaluated)


def cancel_trials(connection: sa.Connection, sweep: int, one: int | None = None, cell: int | None = None) -> Touched:
    """Cancel the active trials and the evaluations of a sweep, of a cell, or of one trial; returns how many."""
    cancelled = _end_trials(connection, sweep, part_of(sweep, one, cell), TrialState.CANCELLED)
    return Touched(cancelled, trial_rows.cancel(connection, sweep, one, cell))


def _expand_again(connection: sa.Connection, sweep: int) -> Touched:
    """Queue a sweep that ended before all of its trials were written; the written trials wait."""
    retried = retry_trials(connection, sweep, ENDED_WITHOUT_RESULT, None, None)
    ended = (sweeps.c.id == sweep, sweeps.c.state.in_(before(SWEEP_STEPS, SweepState.QUEUED)))
    again = sa.update(sweeps).where(*ended).values(state=SweepState.QUEUED, ended=None, error=None)
    if connection.execute(again).rowcount:
        mark_sweep(connection, sweep)
    return Touched(retried, 0)


def retry_trials(
    connection: sa.Connection, sweep: int, states: Collection[TrialState], one: int | None, where: int | None
) -> int:
    """Let the trials of a sweep, of a cell, or one trial wait again; returns how many."""
    which = [*part_of(sweep, one, where), trial.c.state.in_(states)]
    retried = connection.execute(sa.select(trial.c.id, trial.c.cell, trial.c.training_id).where(*which)).all()
    for rows in chunked(retried, 1_000):
        _wait_again(connection, [row.id for row in rows], sorted({row.training_id for row in rows}))
        unsettle(connection, sweep, (row.cell for row in rows))
        trials_changed(connection, [(sweep, row.id) for row in rows])
        trial_rows.move(connection, sorted({row.training_id for row in rows}))
    return len(retried)


def _wait_again(connection: sa.Connection, trials: list[int], trainings: list[int]) -> None:
    """Let trials and their trainings wait again; a training that runs or has finished meanwhile decides the state."""
    now = datetime.now(UTC)
    ended = (training.c.id.in_(trainings), training.c.state.in_(_RETRIED))
    connection.execute(sa.update(training).where(*ended).values(WAITING_AGAIN))
    connection.execute(sa.update(trial).where(trial.c.id.in_(trials)).values(state=TrialState.WAITING, ended=None))
    states = sa.select(training.c.id, training.c.state, training.c.diverged).where(training.c.id.in_(trainings))
    for row in connection.execute(states.where(training.c.state != TrialState.WAITING)).all():
        if row.state == TrialState.RUNNING:
            run_with_training(connection, row.id, now)
        else:
            connection.execute(
                sa.update(trial)
                .where(trial.c.training_id == row.id, trial.c.id.in_(trials))
                .values(
                    state=TrialState.FINISHED,
                    reused=first_trial(connection, row.id) is not None,  # otherwise it was run for this trial
                    diverged=row.diverged,
                    started=sa.func.coalesce(trial.c.started, now),
                    ended=now,
                )
            )
            take_results(connection, trials)


def _reopen(connection: sa.Connection, sweep: int) -> bool:
    """Let the searches of an ended sweep continue; exhausted searches close again at once."""
    row = connection.execute(sa.select(sweeps.c.spec, sweeps.c.state).where(sweeps.c.id == sweep)).one()
    if row.state not in SWEEP_ENDED or ((row.spec.get("search") or {}).get("name") or "grid") == "grid":
        return False
    again = sa.update(cell).where(cell.c.sweep_id == sweep)
    return connection.execute(again.values(open=True, settled=None, summary=None)).rowcount > 0


def _failed_at_its_end(connection: sa.Connection, sweep: int) -> bool:
    """Whether a sweep failed because its cells could not be summarized."""
    failed = (sweeps.c.state == SweepState.FAILED, sweeps.c.started.is_not(None), sweeps.c.error.is_not(None))
    return connection.execute(sa.select(sweeps.c.id).where(sweeps.c.id == sweep, *failed)).first() is not None
