"""What goes with a sweep that is deleted."""

from dataclasses import dataclass

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.schema import attempt, training, trial
from orchestrator.views.errors import ConflictError
from orchestrator.views.states import SWEEP_ENDED


@dataclass(frozen=True, slots=True)
class Deletion:
    """What goes with a sweep beside its rows."""

    trainings: tuple[str, ...]  # uids: folders of the storage
    busy: bool  # whether one of the trainings is still being stopped, and writes into its folder meanwhile


def deletion(connection: sa.Connection, sweep: int) -> Deletion | None:
    """What only this sweep uses; none when there is no such sweep (any more); ConflictError while it goes on."""
    table = schema.sweep
    state = connection.execute(sa.select(table.c.state).where(table.c.id == sweep)).scalar_one_or_none()
    if state is None:
        return None
    if state not in SWEEP_ENDED:
        raise ConflictError(f"sweep {sweep} is {state}; cancel it before it is deleted")
    uids = connection.execute(sa.select(training.c.uid).where(training.c.id.in_(only_of(sweep)))).scalars()
    stopping = attempt.c.training_id.in_(only_of(sweep)), attempt.c.state == "running"
    busy = connection.execute(sa.select(attempt.c.id).where(*stopping).limit(1)).first() is not None
    return Deletion(tuple(uids), busy)


def only_of(sweep: int) -> sa.Select[tuple[int]]:
    """The ids of the trainings that trials of this sweep point to and of no other, with those that they replaced.

    With them go those that evaluate them, and those that they evaluate, where no other sweep shows these. One that is
    still evaluated stays: its file is what stands behind another one's numbers.
    """
    mine = sa.select(trial.c.training_id.label("id")).where(trial.c.sweep_id == sweep)
    to_be = sa.select(trial.c.evaluation_id).where(trial.c.sweep_id == sweep, trial.c.evaluation_id.is_not(None))
    its = mine.union(to_be).subquery()
    first = sa.select(training.c.id, training.c.source).join(its, its.c.id == training.c.id)
    alone = first.where(~_shown_elsewhere(sweep)).cte(recursive=True)
    kin = sa.or_(
        training.c.heir == alone.c.id, training.c.source == alone.c.id, training.c.id == alone.c.source
    )  # fmt: skip
    following = sa.select(training.c.id, training.c.source).join(alone, kin).where(~_shown_elsewhere(sweep))
    family = alone.union(following)
    other = training.alias("other_training")
    needed = sa.exists().where(other.c.source == family.c.id, other.c.id.not_in(sa.select(family.c.id)))
    return sa.select(family.c.id).where(~needed)


def _shown_elsewhere(sweep: int) -> sa.ColumnElement[bool]:
    """Whether a trial of another sweep points to a training, or is to."""
    other = trial.alias("other")
    points = sa.exists().where(other.c.training_id == training.c.id, other.c.sweep_id != sweep)
    return sa.or_(points, sa.exists().where(other.c.evaluation_id == training.c.id, other.c.sweep_id != sweep))
