"""Early stopping: who competes in a cell, what their trainings reported, and those that are pruned."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.json_floats import finite_or_none, number
from orchestrator.record.schema import attempt, candidate, metric, training, trial
from orchestrator.record.writes.dirty_flags import mark_trials
from orchestrator.views.lifecycle import SWEEP_GOING, TRIAL_ACTIVE, TRIAL_STEPS, TrialState, before

_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Competitor:
    """A trial as early stopping sees it."""

    trial: int
    sweep: int
    cell: int
    candidate: int
    repeat: int
    training: int
    state: TrialState
    ended: datetime | None  # of a reused one when it was trained: its peers were judged by that
    spared: bool  # pruned once and retried since: it is trained to its end
    total: int  # steps of its training
    score: float | None  # of a finished one; none where it diverged
    stamp: str = ""  # of its training's versions
    recipe: dict[str, Any] | None = None  # of the cell's first candidate only


@dataclass(frozen=True, slots=True)
class RecordedEvaluation:
    """A value of the selection metric that a training reported."""

    id: int  # in the order in which they were recorded
    training: int
    step: int
    value: float
    at: datetime


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


class Pruning(Access):
    """What the conductor's early stopping reads and writes."""

    def going(self) -> list[int]:
        """Sweeps in which something may train."""
        table = schema.sweep
        query = sa.select(table.c.id).where(table.c.state.in_(SWEEP_GOING))
        with self._database.reading() as connection:
            return list(connection.execute(query.order_by(table.c.id)).scalars())

    def pruning_spec(self, sweep: int) -> dict[str, Any] | None:
        """The spec of a sweep that stops early; none for any other."""
        with self._database.reading() as connection:
            found = connection.execute(sa.select(schema.sweep.c.spec).where(schema.sweep.c.id == sweep)).scalar_one()
        return dict(found) if found.get("prune") else None

    def cells_under_way(self, sweep: int) -> list[int]:
        """Cells of which something has begun and something is still to come."""
        active = sa.func.sum(sa.case((trial.c.state.in_(TRIAL_ACTIVE), 1), else_=0))
        begun = sa.func.sum(sa.case((trial.c.state != TrialState.WAITING, 1), else_=0))
        query = sa.select(trial.c.cell).where(trial.c.sweep_id == sweep).group_by(trial.c.cell)
        with self._database.reading() as connection:
            return list(connection.execute(query.having(active > 0, begun > 0).order_by(trial.c.cell)).scalars())

    def last_position(self, sweep: int) -> int:
        """The position of a sweep's last trial; -1 when it has none."""
        query = sa.select(sa.func.coalesce(sa.func.max(trial.c.position), -1)).where(trial.c.sweep_id == sweep)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def competitors(self, sweep: int, cell: int) -> list[Competitor]:
        """The trials of a cell in order; those of its first candidate with their recipes."""
        here = (trial.c.sweep_id == sweep, trial.c.cell == cell)
        first = sa.case((trial.c.candidate == 0, training.c.recipe))
        return self._competitors(_competing().add_columns(first.label("recipe")).where(*here))

    def appended(self, sweep: int, position: int) -> list[Competitor]:
        """The trials of a sweep after a position, in order."""
        return self._competitors(_competing().where(trial.c.sweep_id == sweep, trial.c.position > position))

    def competitors_of(self, attempt_uid: str) -> list[Competitor]:
        """The trials, of any sweep, that share the training of an attempt."""
        its = sa.select(attempt.c.training_id).where(attempt.c.uid == attempt_uid).scalar_subquery()
        return self._competitors(_competing().where(trial.c.training_id == its))

    def _competitors(self, query: sa.Select[Any]) -> list[Competitor]:
        with self._database.reading() as connection:
            return [_competitor(row) for row in connection.execute(query.order_by(trial.c.sweep_id, trial.c.position))]

    def evaluations(self, trainings: Iterable[int], key: str, after: int = 0) -> list[RecordedEvaluation]:
        """What trainings reported under a key, beyond row `after`, in the order of the rows."""
        columns = (metric.c.id, attempt.c.training_id, metric.c.step, metric.c.value, metric.c.at)
        found: list[RecordedEvaluation] = []
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trainings), _CHUNK):
                query = (
                    sa.select(*columns)
                    .join(attempt, attempt.c.id == metric.c.attempt_id)
                    .where(attempt.c.training_id.in_(chunk), metric.c.key == key, metric.c.id > after)
                )
                found += [
                    RecordedEvaluation(row.id, row.training_id, row.step, number(row.value), row.at)
                    for row in connection.execute(query)
                ]
        return sorted(found, key=lambda one: one.id)

    def has_active(self, sweep: int, cell: int) -> bool:
        """Whether a trial of a cell waits or runs."""
        query = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, trial.c.cell == cell)
        with self._database.reading() as connection:
            return connection.execute(query.where(trial.c.state.in_(TRIAL_ACTIVE)).limit(1)).first() is not None

    def prune(self, fence: int, verdict: PruningDecision) -> int | None:
        """End a candidate's active trials as pruned and return how many these were.

        None, and nothing is changed, where no other candidate of the cell could still be selected.
        """
        its = (trial.c.sweep_id == verdict.sweep, trial.c.cell == verdict.cell, trial.c.candidate == verdict.candidate)
        with self._database.writing(fence) as connection:
            if connection.execute(_rival(verdict)).first() is None:
                return None
            rows = connection.execute(
                sa.update(trial)
                .where(*its, trial.c.state.in_(before(TRIAL_STEPS, TrialState.PRUNED)))
                .values(state=TrialState.PRUNED, ended=datetime.now(UTC), reason=_reason(verdict))
                .returning(trial.c.id, trial.c.training_id, trial.c.mlflow_run)
            ).all()
            if rows:
                self._end(connection, verdict, [row.training_id for row in rows])
                mark_trials(self._database, connection, [(verdict.sweep, row.id) for row in rows if row.mlflow_run])
            return len(rows)

    def _end(self, connection: sa.Connection, verdict: PruningDecision, trainings: Collection[int]) -> None:
        its = (
            candidate.c.sweep_id == verdict.sweep,
            candidate.c.cell == verdict.cell,
            candidate.c.candidate == verdict.candidate,
        )
        connection.execute(
            sa.update(candidate)
            .where(*its, candidate.c.told.is_(None))
            .values(pruned=verdict.number, score=finite_or_none(verdict.value))
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
    still_wanted = sa.exists().where(trial.c.training_id == training.c.id, trial.c.state.in_(TRIAL_ACTIVE))
    connection.execute(
        sa.update(training)
        .where(training.c.id.in_(trainings), training.c.state == TrialState.WAITING, ~still_wanted)
        .values(state=TrialState.PRUNED, ended=datetime.now(UTC))
    )


def unwanted(connection: sa.Connection, training_id: int) -> TrialState:
    """How a training ends that nobody wants any more: as did the trial that wanted it last."""
    ends = (TrialState.CANCELLED, TrialState.PRUNED)
    query = sa.select(trial.c.state).where(trial.c.training_id == training_id, trial.c.state.in_(ends))
    last = connection.execute(query.order_by(trial.c.ended.desc(), trial.c.id.desc()).limit(1)).scalar_one_or_none()
    return TrialState.CANCELLED if last is None else TrialState(last)


def _competing() -> sa.Select[Any]:
    return sa.select(
        trial.c.id, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat, trial.c.training_id,
        trial.c.state, trial.c.ended, trial.c.reused, trial.c.diverged, trial.c.reason, training.c.total_steps,
        training.c.score, training.c.ended.label("trained"), training.c.stamp,
    ).join(training, training.c.id == trial.c.training_id)  # fmt: skip


def _competitor(row: sa.Row[Any]) -> Competitor:
    state = TrialState(row.state)
    ok = state is TrialState.FINISHED and not row.diverged
    return Competitor(
        trial=row.id, sweep=row.sweep_id, cell=row.cell, candidate=row.candidate, repeat=row.repeat,
        training=row.training_id, state=state, ended=row.trained if row.reused else row.ended,
        spared=row.reason is not None and state is not TrialState.PRUNED,
        total=row.total_steps, score=row.score if ok else None, stamp=row.stamp,
        recipe=row._mapping.get("recipe"),
    )  # fmt: skip


def _rival(verdict: PruningDecision) -> sa.Select[tuple[int]]:
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
    of_cell = (candidate.c.sweep_id == verdict.sweep, candidate.c.cell == verdict.cell)
    others = sa.select(candidate.c.candidate).where(*of_cell, candidate.c.candidate != verdict.candidate)
    # From the last: in a grid it waits, so that the first that is looked at will do.
    return others.where(~lost).order_by(candidate.c.candidate.desc()).limit(1)


def _reason(verdict: PruningDecision) -> sa.ColumnElement[str]:
    """One sentence: of the trial that was judged, and of those that share its candidate."""
    with_it = f"pruned with trial {verdict.trial}, {verdict.why}"
    return sa.case((trial.c.id == verdict.trial, f"pruned {verdict.why}"), else_=with_it)
