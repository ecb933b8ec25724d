"""Early stopping: who competes in a cell, and what their trainings reported."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access, chunked
from orchestrator.record.json_floats import number
from orchestrator.record.schema import attempt, metric, training, trial
from orchestrator.views.states import TRIAL_ACTIVE, TrialState

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


class PruningReader(Access):
    """Reads what competes."""

    def spec(self, sweep: int) -> dict[str, Any] | None:
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
        recorded: list[RecordedEvaluation] = []
        with self._database.reading() as connection:
            for chunk in chunked(dict.fromkeys(trainings), _CHUNK):
                query = (
                    sa.select(*columns)
                    .join(attempt, attempt.c.id == metric.c.attempt_id)
                    .where(attempt.c.training_id.in_(chunk), metric.c.key == key, metric.c.id > after)
                )
                recorded += [
                    RecordedEvaluation(row.id, row.training_id, row.step, number(row.value), row.at)
                    for row in connection.execute(query)
                ]
        return sorted(recorded, key=lambda one: one.id)


def _competing() -> sa.Select[Any]:
    return sa.select(
        trial.c.id, trial.c.sweep_id, trial.c.cell, trial.c.candidate, trial.c.repeat,
        sa.func.coalesce(training.c.source, trial.c.training_id).label("training_id"),
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
