"""Orders: the trainings that wait, claimed one by one as attempts."""

import uuid
from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess
from orchestrator.record.reads.claims import NOTHING, RUNNING, Exclusions, Turn, first_waiting
from orchestrator.record.reads.sources import evaluation_of
from orchestrator.record.reads.trial_name import order_names
from orchestrator.record.schema import attempt, collected, node, training, trial
from orchestrator.record.writes.changes import note_trials
from orchestrator.record.writes.progress import write_log
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Node, shape_of
from orchestrator.views.runs import Order
from orchestrator.views.states import TrialState


class ClaimWriter(FencedAccess):
    """Gives out what waits."""

    def next(self, passed: Exclusions = NOTHING) -> Order | None:
        """Claim the training whose turn it is; none: nothing waits but what is passed over."""
        with self._database.reading() as connection:
            if first_waiting(connection, passed) is None:
                return None  # as most calls find: they need not take the writer's lock
        with self._database.writing() as connection:
            first = first_waiting(connection, passed)
            return None if first is None else _claim(connection, self._database.fence, first)


def _claim(connection: sa.Connection, fence: int, turn: Turn) -> Order:
    now, training_id, slot = datetime.now(UTC), turn.training, turn.slot
    row = connection.execute(_CLAIMED, {"mine": training_id, "now": now, "state": TrialState.RUNNING}).one()
    run_with_training(connection, training_id, now)
    number, resume = _number_and_resume(connection, training_id, row.uid)
    connection.execute(_KEPT_ANEW, {"mine": training_id})
    uid = str(uuid.uuid4())
    connection.execute(
        _ATTEMPT,
        {
            "uid": uid, "training_id": training_id, "number": number, "state": RUNNING, "fence": fence,
            "slot": slot.model_dump(mode="json"), "resumed_from": resume, "started": now, "owner_id": turn.owner,
            "project_id": turn.project, "cpus": slot.cpus, "gpus": _gpus(connection, slot),
        },
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


def _gpus(connection: sa.Connection, slot: Slot) -> float:
    """What an attempt holds of GPUs; `auto` is settled by what the cluster holds now."""
    if slot.gpus != "auto":
        return slot.gpus
    there = connection.execute(sa.select(node.c.uid, node.c.host, node.c.resources).where(node.c.alive))
    return shape_of(slot, [Node(row.uid, row.host, row.resources) for row in there]).gpus


def run_with_training(connection: sa.Connection, training_id: int, now: datetime) -> None:
    """A training's waiting trials run when it runs, whichever sweep they are of."""
    begun = connection.execute(_RUN, {"mine": training_id, "now": now, "state": TrialState.RUNNING}).all()
    note_trials(connection, [(row.sweep_id, row.id) for row in begun])


def _number_and_resume(connection: sa.Connection, training_id: int, uid: str) -> tuple[int, str | None]:
    """The next attempt's number, and the checkpoint of the latest attempt that reported one."""
    earlier = connection.execute(_EARLIER, {"mine": training_id}).all()
    number = earlier[0].number + 1 if earlier else 1
    kept = next((row for row in earlier if row.checkpoint), None)
    return number, f"{uid}/{kept.number}/{kept.checkpoint}" if kept else None


# Made once, since every attempt has them all.
_MINE: Final[sa.BindParameter[int]] = sa.bindparam("mine")
_CLAIMED: Final = (
    sa.update(training)
    .where(training.c.id == _MINE, training.c.state == TrialState.WAITING)
    .values(started=sa.func.coalesce(training.c.started, sa.bindparam("now", type_=training.c.started.type)))
    .returning(training.c.uid, training.c.recipe, training.c.need, training.c.source)
)
_KEPT_ANEW: Final = sa.delete(collected).where(collected.c.training_id == _MINE)
"""The attempt will keep weights, which no longer are let go."""
_ATTEMPT: Final = sa.insert(attempt)
_RUN: Final = (
    sa.update(trial)
    .where(trial.c.training_id == _MINE, trial.c.state == TrialState.WAITING)
    .values(started=sa.func.coalesce(trial.c.started, sa.bindparam("now", type_=trial.c.started.type)))
    .returning(trial.c.sweep_id, trial.c.id)
)
_EARLIER: Final = (
    sa.select(attempt.c.number, attempt.c.checkpoint)
    .where(attempt.c.training_id == _MINE)
    .order_by(attempt.c.number.desc())
)
