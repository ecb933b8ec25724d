"""How trials end before their trainings do, and how they go on: cancelling and retrying; how their sweeps end."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import FencedAccess, chunked
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.expansion import unexpanded
from orchestrator.record.reads.trials import first_trial
from orchestrator.record.reads.wanting import evaluation_failed, evaluation_left, wanted
from orchestrator.record.schema import cell, training, trial
from orchestrator.record.writes import evaluations
from orchestrator.record.writes.changes import note_trials
from orchestrator.record.writes.claims import run_with_training
from orchestrator.record.writes.dirty_flags import mark_cell, mark_sweep, mark_trials, may_be_shown
from orchestrator.record.writes.trial_places import take_results
from orchestrator.views.states import (
    SWEEP_ENDED,
    SWEEP_STEPS,
    TRIAL_ACTIVE,
    TRIAL_STEPS,
    SweepState,
    TrialState,
    before,
)

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
            ended = evaluations.cancel(connection, sweep, trial, cell)
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
            again_evaluated = evaluations.retry(connection, sweep, trial, cell)
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
        evaluations.move(connection, sorted({row.training_id for row in rows}))
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
