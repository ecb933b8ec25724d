"""Early stopping: the candidates that are pruned, and what ends with them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess, chunked
from orchestrator.record.json_floats import finite_or_none
from orchestrator.record.reads.wanting import wanted
from orchestrator.record.schema import candidate, training, trial
from orchestrator.record.writes.changes import note_trials
from orchestrator.record.writes.dirty_flags import mark_trials, may_be_shown
from orchestrator.views.states import TRIAL_ACTIVE, TRIAL_STEPS, TrialState, before

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
