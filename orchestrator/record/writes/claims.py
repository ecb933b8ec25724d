"""Orders: the trainings that wait, claimed one by one as attempts."""

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess
from orchestrator.record.reads.claims import RUNNING, Exclusions, first_waiting
from orchestrator.record.reads.sources import evaluation_of
from orchestrator.record.reads.trial_name import order_names
from orchestrator.record.schema import attempt, collected, training, trial
from orchestrator.record.writes.changes import note_trials
from orchestrator.record.writes.progress import write_log
from orchestrator.spec.slot import Slot
from orchestrator.views.lifecycle import TrialState
from orchestrator.views.orders import Order


class ClaimWriter(FencedAccess):
    """Gives out what waits."""

    def next(
        self,
        quota: int | None = None,
        resting: Collection[str] = frozenset(),
        barred: Collection[str] = frozenset(),
        held: Collection[str] = frozenset(),
        racing: Mapping[int, int] | None = None,
    ) -> Order | None:
        """Claim the training whose turn it is.

        None: nothing waits, or only for owners who hold `quota` slots, or only trainings that rest after a loss, or
        whose slot is one of `barred` (its JSON as the database holds it), or whose need is one of `held` (its key), or
        whose round of a race (`racing`, as `Exclusions` has it) has not begun.
        """
        passed = Exclusions(quota, tuple(resting), tuple(barred), tuple(held), racing or {})
        with self._database.reading() as connection:
            if first_waiting(connection, passed) is None:
                return None  # as most calls find: they need not take the writer's lock
        with self._database.writing() as connection:
            first = first_waiting(connection, passed)
            return None if first is None else _claim(connection, self._database.fence, *first)


def _claim(connection: sa.Connection, fence: int, training_id: int, slot: Slot) -> Order:
    now = datetime.now(UTC)
    row = connection.execute(
        sa.update(training)
        .where(training.c.id == training_id, training.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(training.c.started, now))
        .returning(training.c.uid, training.c.recipe, training.c.need, training.c.source)
    ).one()
    run_with_training(connection, training_id, now)
    number, resume = _number_and_resume(connection, training_id, row.uid)
    connection.execute(sa.delete(collected).where(collected.c.training_id == training_id))  # it will keep weights anew
    uid = str(uuid.uuid4())
    connection.execute(
        sa.insert(attempt).values(
            uid=uid, training_id=training_id, number=number, state=RUNNING, fence=fence,
            slot=slot.model_dump(mode="json"), resumed_from=resume, started=now,
        )
    )  # fmt: skip
    if number > 1:
        attempt_id = connection.execute(sa.select(attempt.c.id).where(attempt.c.uid == uid)).scalar_one()
        write_log(connection, training_id, attempt_id, 0, f"--- attempt {number} ---\n")
    names = order_names(connection, training_id)
    evaluation = None if row.source is None else evaluation_of(connection, row.source, row.recipe)
    return Order(
        uid,
        row.uid,
        number,
        row.recipe,
        slot,
        resume,
        need=row.need,
        label=names.label,
        evaluation=evaluation,
        sweep=names.sweep,
        trial=names.trial,
    )


def run_with_training(connection: sa.Connection, training_id: int, now: datetime) -> None:
    """A training's waiting trials run when it runs, whichever sweep they are of."""
    begun = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == training_id, trial.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(trial.c.started, now))
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    note_trials(connection, [(row.sweep_id, row.id) for row in begun])


def _number_and_resume(connection: sa.Connection, training_id: int, uid: str) -> tuple[int, str | None]:
    """The next attempt's number, and the checkpoint of the latest attempt that reported one."""
    earlier = connection.execute(
        sa.select(attempt.c.number, attempt.c.checkpoint)
        .where(attempt.c.training_id == training_id)
        .order_by(attempt.c.number.desc())
    ).all()
    number = earlier[0].number + 1 if earlier else 1
    kept = next((row for row in earlier if row.checkpoint), None)
    return number, f"{uid}/{kept.number}/{kept.checkpoint}" if kept else None
