"""Events of attempts, cells and sweeps, written once; a repeated event changes nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from orchestrator.cost.estimate import shape_key, shape_of
from orchestrator.record import schema, trial_rows
from orchestrator.record.changes import (
    MAY_BE_SHOWN,
    REST_SECONDS,
    mark_cell,
    mark_sweep,
    mark_trials,
    may_be_shown,
    note_progress,
    note_stalled,
    note_trials,
    tell_stalled,
)
from orchestrator.record.claims import WRITTEN_LAST, append_log, append_points, run_with_training, write_log
from orchestrator.record.columns import MAX_MESSAGE, dump_result, finite_or_none, selection_score, storable
from orchestrator.record.database import FencedAccess, chunked, require_sweep
from orchestrator.record.schema import attempt, candidate, cell, training, trial
from orchestrator.record.trainings import evaluation_failed, evaluation_left, wanted
from orchestrator.record.trial_rows import take_result, take_results
from orchestrator.record.trials import first_trial, unexpanded
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

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class PruningDecision:
    """That a candidate is to be pruned, by what one of its trials reported."""

    sweep: int
    cell: int
    candidate: int
    trial: int
    number: int  # of the evaluation
    value: float
    why: str


class PruningWriter(FencedAccess):
    """Ends what is hopeless."""

    def prune(self, decision: PruningDecision) -> int | None:
        """End a candidate's active trials as pruned and return how many these were.

        None, and nothing is changed, where no other candidate of the cell could still be selected.
        """
        its = (
            trial.c.sweep_id == decision.sweep,
            trial.c.cell == decision.cell,
            trial.c.candidate == decision.candidate,
        )
        with self._database.writing() as connection:
            if connection.execute(_rival(decision)).first() is None:
                return None
            rows = connection.execute(
                sa.update(trial)
                .where(*its, trial.c.state.in_(before(TRIAL_STEPS, TrialState.PRUNED)))
                .values(state=TrialState.PRUNED, ended=datetime.now(UTC), reason=_reason(decision))
                .returning(trial.c.id, trial.c.training_id, trial.c.started, trial.c.mlflow_run)
            ).all()
            if rows:
                self._end(connection, decision, [row.training_id for row in rows])
                mark_trials(connection, [(decision.sweep, row.id) for row in rows if may_be_shown(row)])
                note_trials(connection, [(decision.sweep, row.id) for row in rows])
            return len(rows)

    def _end(self, connection: sa.Connection, decision: PruningDecision, trainings: Collection[int]) -> None:
        its = (
            candidate.c.sweep_id == decision.sweep,
            candidate.c.cell == decision.cell,
            candidate.c.candidate == decision.candidate,
        )
        connection.execute(
            sa.update(candidate)
            .where(*its, candidate.c.told.is_(None))
            .values(pruned=decision.number, score=finite_or_none(decision.value))
        )
        _end_unwanted(connection, trainings)


def prune_added(connection: sa.Connection, sweep: int, position: int) -> None:
    """End the repeats, from a position on, that were added to pruned candidates: these cannot be selected any more."""
    other = trial.alias()
    here = (
        other.c.sweep_id == trial.c.sweep_id,
        other.c.cell == trial.c.cell,
        other.c.candidate == trial.c.candidate,
    )
    gone = sa.exists().where(*here, other.c.state == TrialState.PRUNED)
    spared = sa.exists().where(*here, other.c.reason.is_not(None), other.c.state != TrialState.PRUNED)
    reason = "pruned with its candidate, which had been pruned before this repeat was added"
    rows = connection.execute(
        sa.update(trial)
        .where(trial.c.sweep_id == sweep, trial.c.position >= position, trial.c.state.in_(TRIAL_ACTIVE), gone, ~spared)
        .values(state=TrialState.PRUNED, ended=datetime.now(UTC), reason=reason)
        .returning(trial.c.training_id)
    ).scalars()
    for trainings in chunked(list(rows), _CHUNK):
        _end_unwanted(connection, trainings)


def _end_unwanted(connection: sa.Connection, trainings: Collection[int]) -> None:
    """A training that runs is stopped by its engine, which asks whether it is wanted; one that waits ends here."""
    connection.execute(
        sa.update(training)
        .where(training.c.id.in_(trainings), training.c.state == TrialState.WAITING, ~wanted(training.c.id))
        .values(state=TrialState.PRUNED, ended=datetime.now(UTC))
    )


def unwanted(connection: sa.Connection, training_id: int) -> TrialState:
    """How a training ends that nobody wants any more: as did the trial that wanted it last."""
    ends = (TrialState.CANCELLED, TrialState.PRUNED)
    query = sa.select(trial.c.state).where(trial.c.training_id == training_id, trial.c.state.in_(ends))
    last = connection.execute(query.order_by(trial.c.ended.desc(), trial.c.id.desc()).limit(1)).scalar_one_or_none()
    return TrialState.CANCELLED if last is None else TrialState(last)


def _rival(decision: PruningDecision) -> sa.Select[tuple[int]]:
    """Another candidate of the cell that can still be selected."""
    ended_badly = (TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED)
    scoreless = sa.exists().where(training.c.id == trial.c.training_id, training.c.score.is_(None))
    lost = sa.exists().where(
        trial.c.sweep_id == candidate.c.sweep_id,
        trial.c.cell == candidate.c.cell,
        trial.c.candidate == candidate.c.candidate,
        sa.or_(
            trial.c.state.in_(ended_badly),
            trial.c.diverged,
            sa.and_(trial.c.state == TrialState.FINISHED, scoreless),  # its metric was not a number at the end
        ),
    )
    of_cell = (candidate.c.sweep_id == decision.sweep, candidate.c.cell == decision.cell)
    others = sa.select(candidate.c.candidate).where(*of_cell, candidate.c.candidate != decision.candidate)
    # From the last: in a grid it waits, so that the first that is looked at will do.
    return others.where(~lost).order_by(candidate.c.candidate.desc()).limit(1)


def _reason(decision: PruningDecision) -> sa.ColumnElement[str]:
    """One sentence: of the trial that was judged, and of those that share its candidate."""
    with_it = f"pruned with trial {decision.trial}, {decision.why}"
    return sa.case((trial.c.id == decision.trial, f"pruned {decision.why}"), else_=with_it)


_RETRIED = before(TRIAL_STEPS, TrialState.WAITING) - {TrialState.RUNNING}
RETRIED_ALL: Final = (TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED)
_RETRIES: Final[Mapping[str, Sequence[TrialState]]] = {
    "": (TrialState.FAILED, TrialState.CANCELLED),
    "failed": (TrialState.FAILED,),
    "all": RETRIED_ALL,
}


class Touched(NamedTuple):
    """How many a request has changed."""

    trials: int
    evaluations: int


class TrialWriter(FencedAccess):
    """Ends trials, and has them go on."""

    def cancel(self, sweep: int, trial: int | None = None, cell: int | None = None) -> Touched:
        """Cancel a sweep, a cell or a trial of it; gives how many trials that ended, and how many evaluations.

        Others stay as they are, and so do the numbers of trials whose evaluation ends.
        """
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            cancelled = cancel_trials(connection, sweep, trial, cell)
            ended = trial_rows.cancel(connection, sweep, trial, cell)
            if trial is None and cell is not None:
                cells = schema.cell
                which = (cells.c.sweep_id == sweep, cells.c.cell == cell)
                connection.execute(sa.update(cells).where(*which, cells.c.open).values(open=False))
            elif trial is None:
                searches = connection.execute(
                    sa.update(schema.cell).where(schema.cell.c.sweep_id == sweep, schema.cell.c.open).values(open=False)
                )
                self._end_cancelled(connection, sweep, cancelled + searches.rowcount)
            return Touched(cancelled, ended)

    def _end_cancelled(self, connection: sa.Connection, sweep: int, cancelled: int) -> None:
        """A cancelled sweep ends at once, unless its trials had all ended already: then it is settled as usual."""
        table = schema.sweep
        cancellable = [table.c.id == sweep, table.c.state.in_(before(SWEEP_STEPS, SweepState.CANCELLED))]
        if not cancelled:
            cancellable.append(table.c.state != SweepState.RUNNING)
        ending = sa.update(table).where(*cancellable)
        if connection.execute(ending.values(state=SweepState.CANCELLED, ended=datetime.now(UTC))).rowcount:
            mark_sweep(connection, sweep, SweepState.CANCELLED)

    def retry(self, sweep: int, trial: int | None = None, cell: int | None = None, what: str = "") -> Touched:
        """Trials that ended without a result wait again, or take the one that came meanwhile, and so do evaluations.

        `what` is `failed` (only these), `all` (pruned ones too), or empty: failed and cancelled ones.
        """
        with self._database.writing() as connection:
            require_sweep(connection, sweep)
            if unexpanded(connection, sweep):  # it goes on being expanded, whatever part of it is asked for
                return _expand_again(connection, sweep)
            retried = retry_trials(connection, sweep, _RETRIES[what], trial, cell)
            again_evaluated = trial_rows.retry(connection, sweep, trial, cell)
            table = schema.sweep
            again = sa.update(table).where(table.c.id == sweep)
            searched = trial is None and cell is None and _reopen(connection, sweep)
            if retried or again_evaluated or searched:
                # Of an ended sweep only: one that is paused stays so.
                again = again.where(table.c.state.in_(before(SWEEP_STEPS, SweepState.RUNNING) & SWEEP_ENDED))
                again = again.values(state=SweepState.RUNNING)
            elif trial is None and cell is None and _failed_at_its_end(connection, sweep):
                again = again.values(state=SweepState.RUNNING)  # to be settled once more
            else:
                return Touched(retried, again_evaluated)
            if connection.execute(again.values(ended=None, error=None)).rowcount:
                mark_sweep(connection, sweep)
            return Touched(retried, again_evaluated)


def cancel_trials(connection: sa.Connection, sweep: int, one: int | None = None, cell: int | None = None) -> int:
    """Cancel the active trials of a sweep, of a cell of it, or one of them; returns how many these were."""
    which = [trial.c.sweep_id == sweep, trial.c.state.in_(before(TRIAL_STEPS, TrialState.CANCELLED))]
    if one is not None:
        which.append(trial.c.id == one)
    if cell is not None:
        which.append(trial.c.cell == cell)
    rows = connection.execute(
        sa.update(trial)
        .where(*which)
        .values(state=TrialState.CANCELLED, ended=datetime.now(UTC))
        .returning(trial.c.id, trial.c.training_id, trial.c.started, trial.c.mlflow_run)
    ).all()
    # A training that runs is stopped by its engine, which asks whether it is wanted; one that waits ends here.
    touched = sa.select(trial.c.training_id).where(trial.c.sweep_id == sweep)
    if rows:
        connection.execute(
            sa.update(training)
            .where(training.c.id.in_(touched), training.c.state == TrialState.WAITING, ~wanted(training.c.id))
            .values(state=TrialState.CANCELLED, ended=datetime.now(UTC))
        )
    mark_trials(connection, [(sweep, row.id) for row in rows if may_be_shown(row)])
    note_trials(connection, [(sweep, row.id) for row in rows])
    return len(rows)


def retry_trials(
    connection: sa.Connection, sweep: int, states: Sequence[TrialState], one: int | None, where: int | None
) -> int:
    """Have the trials of a sweep, of a cell of it, or one of them wait again; returns how many these were."""
    which = [trial.c.sweep_id == sweep, trial.c.state.in_(states)]
    if one is not None:
        which.append(trial.c.id == one)
    if where is not None:
        which.append(trial.c.cell == where)
    retried = connection.execute(sa.select(trial.c.id, trial.c.cell, trial.c.training_id).where(*which)).all()
    for rows in chunked(retried, 1_000):
        _wait_again(connection, [row.id for row in rows], sorted({row.training_id for row in rows}))
        cells = sorted({row.cell for row in rows})
        connection.execute(
            sa.update(cell).where(cell.c.sweep_id == sweep, cell.c.cell.in_(cells)).values(summary=None, settled=None)
        )
        for index in cells:
            mark_cell(connection, sweep, index)
        mark_trials(connection, [(sweep, row.id) for row in rows])
        note_trials(connection, [(sweep, row.id) for row in rows])
        trial_rows.move(connection, sorted({row.training_id for row in rows}))
    return len(retried)


def end_sweep(connection: sa.Connection, sweep: int) -> SweepState | None:
    """Give a running sweep whose trials have all ended its final state, and return that; none: nothing changed."""
    counts = sa.select(trial.c.state, sa.func.count()).where(trial.c.sweep_id == sweep).group_by(trial.c.state)
    states = {row[0] for row in connection.execute(counts).all()}
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
    table = schema.sweep
    ended = connection.execute(
        sa.update(table)
        .where(table.c.id == sweep, table.c.state == SweepState.RUNNING)
        .values(state=state, ended=datetime.now(UTC))
    )
    return state if ended.rowcount == 1 else None


def _expand_again(connection: sa.Connection, sweep: int) -> Touched:
    """One that ended before all of its trials were written is queued; those that are wait."""
    retried = retry_trials(connection, sweep, RETRIED_ALL, None, None)
    table = schema.sweep
    ended = (table.c.id == sweep, table.c.state.in_(before(SWEEP_STEPS, SweepState.QUEUED)))
    again = sa.update(table).where(*ended).values(state=SweepState.QUEUED, ended=None, error=None)
    if connection.execute(again).rowcount:
        mark_sweep(connection, sweep)
    return Touched(retried, 0)


def _failed_at_its_end(connection: sa.Connection, sweep: int) -> bool:
    """Whether a sweep failed though none of its trials did: its cells could not be summed up."""
    table = schema.sweep
    failed = (table.c.state == SweepState.FAILED, table.c.started.is_not(None), table.c.error.is_not(None))
    return connection.execute(sa.select(table.c.id).where(table.c.id == sweep, *failed)).first() is not None


def _reopen(connection: sa.Connection, sweep: int) -> bool:
    """Let the searches of an ended sweep go on where they left off; those that are exhausted close again at once."""
    table = schema.sweep
    row = connection.execute(sa.select(table.c.spec, table.c.state).where(table.c.id == sweep)).one()
    if row.state not in SWEEP_ENDED or ((row.spec.get("search") or {}).get("name") or "grid") == "grid":
        return False
    again = sa.update(cell).where(cell.c.sweep_id == sweep)
    return connection.execute(again.values(open=True, settled=None, summary=None)).rowcount > 0


def is_wanted(connection: sa.Connection, training_id: int) -> bool:
    """Whether some trial still waits for the training or runs with it, or is to move to it.

    An evaluation that has failed while it ran is not: its trials point to it only to say why.
    """
    its = sa.select(training.c.id).where(training.c.id == training_id, training.c.state.in_(TRIAL_ACTIVE))
    return connection.execute(its.where(wanted(training_id))).first() is not None


def _wait_again(connection: sa.Connection, trials: list[int], trainings: list[int]) -> None:
    """Trials wait again, and so do their trainings, unless those run or have finished meanwhile: then they follow."""
    now = datetime.now(UTC)
    connection.execute(
        sa.update(training)
        .where(training.c.id.in_(trainings), training.c.state.in_(_RETRIED))
        .values(state=TrialState.WAITING, error=None, trace=None, ended=None)
    )
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
                    reused=first_trial(connection, row.id) is not None,  # else it was run for this very trial
                    diverged=row.diverged,
                    started=sa.func.coalesce(trial.c.started, now),
                    ended=now,
                )
            )
            take_results(connection, trials)


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
            values = trial_rows.completed(connection, row.source, result)
        self._move(connection, running.training_id, TrialState.FINISHED, values)
        trial_rows.move(connection, [running.training_id])

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
        if failure.kind == "kept_weights" and trial_rows.train_instead(connection, running.training_id):
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
