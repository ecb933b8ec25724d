"""What a sweep holds, before it is extended or deleted."""

from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.schema import attempt, candidate, cell, request, training, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.extension import TrialKey
from orchestrator.views.lifecycle import SWEEP_ENDED, TRIAL_ACTIVE, TRIAL_ENDED


@dataclass(frozen=True, slots=True)
class Deletion:
    """What goes with a sweep beside its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    experiment: str | None  # the tracker's
    busy: bool  # whether one of the trainings is still being stopped, and writes into its folder meanwhile


class TrialKeys(Access):
    """Reads what stands in the way of a change, and what goes with it."""

    def require_going(self, sweep: int, what: str, trial_id: int | None = None, cell_index: int | None = None) -> None:
        """Raise ConflictError where a sweep, a cell or a trial of it has ended and nothing that waits may revive it.

        `what` could be done to it else, in words; NotFoundError where there is no such sweep.
        """
        head = sa.select(schema.sweep.c.state).where(schema.sweep.c.id == sweep)
        active = sa.select(trial.c.id).where(trial.c.sweep_id == sweep, trial.c.state.in_(TRIAL_ACTIVE)).limit(1)
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            if connection.execute(_revivals(sweep)).first() is not None:
                return
            state = connection.execute(head).scalar_one()
            ended = f"sweep {sweep} is {state}" if state in SWEEP_ENDED else None
            if ended is None and trial_id is not None:
                its = connection.execute(sa.select(trial.c.state).where(trial.c.id == trial_id)).scalar_one_or_none()
                ended = f"trial {trial_id} is {its}" if its in TRIAL_ENDED else None
            elif ended is None and cell_index is not None:
                searched = sa.select(cell.c.open).where(cell.c.sweep_id == sweep, cell.c.cell == cell_index)
                goes_on = connection.execute(active.where(trial.c.cell == cell_index)).first()
                if goes_on is None and not connection.execute(searched).scalar_one_or_none():
                    ended = f"all trials of cell {cell_index} of sweep {sweep} have ended"
        if ended is not None:
            raise ConflictError(f"{ended}; only what goes on can be {what}")

    def places(self, sweep: int) -> list[TrialKey]:
        """All trials of a sweep in their order."""
        query = (
            sa.select(
                trial.c.cell, cell.c.labels.label("cell_labels"), trial.c.candidate,
                candidate.c.labels.label("candidate_labels"), trial.c.repeat, trial.c.repeat_labels,
                training.c.fingerprint, training.c.stamp,
            )
            .join(training, training.c.id == trial.c.training_id)
            .join(cell, sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell))
            .join(
                candidate,
                sa.and_(
                    candidate.c.sweep_id == trial.c.sweep_id,
                    candidate.c.cell == trial.c.cell,
                    candidate.c.candidate == trial.c.candidate,
                ),
            )
            .where(trial.c.sweep_id == sweep)
            .order_by(trial.c.position)
        )  # fmt: skip
        with self._database.reading() as connection:
            return [TrialKey(**row._mapping) for row in connection.execute(query)]

    def deletion(self, sweep: int) -> Deletion | None:
        """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
        table = schema.sweep
        with self._database.reading() as connection:
            head = sa.select(table.c.state, table.c.mlflow_experiment).where(table.c.id == sweep)
            row = connection.execute(head).one_or_none()
            if row is None:
                return None
            if row.state not in SWEEP_ENDED:
                raise ConflictError(f"sweep {sweep} is {row.state}; cancel it before it is deleted")
            uids = connection.execute(sa.select(training.c.uid).where(training.c.id.in_(only_of(sweep)))).scalars()
            stopping = attempt.c.training_id.in_(only_of(sweep)), attempt.c.state == "running"
            busy = connection.execute(sa.select(attempt.c.id).where(*stopping).limit(1)).first() is not None
            return Deletion(tuple(uids), row.mlflow_experiment, busy)


def _revivals(sweep: int) -> sa.Select[tuple[int]]:
    """Requests that wait, after which trials of an ended sweep may go on."""
    waiting = (request.c.sweep_id == sweep, request.c.applied.is_(None))
    return sa.select(request.c.id).where(*waiting, request.c.kind.in_(["retry", "extend"])).limit(1)


def only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that trials of this sweep point to and of no other, with those that they replaced."""
    other = trial.alias("other")
    shared = sa.exists().where(other.c.training_id == trial.c.training_id, other.c.sweep_id != sweep)
    alone = sa.select(trial.c.training_id.label("id")).where(trial.c.sweep_id == sweep, ~shared).cte(recursive=True)
    shown = sa.exists().where(other.c.training_id == training.c.id, other.c.sweep_id != sweep)
    return sa.select(alone.union(sa.select(training.c.id).where(training.c.heir == alone.c.id, ~shown)).c.id)
