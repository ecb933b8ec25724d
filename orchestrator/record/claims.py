"""Claims the next training, and records its progress."""

import functools
import uuid
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.changes import note_trials
from orchestrator.record.columns import finite_or_none, storable
from orchestrator.record.database import FencedAccess, chunked, insertion_of
from orchestrator.record.queue import NOTHING, RUNNING, Exclusions, Turn, first_waiting, order_names
from orchestrator.record.schema import attempt, collected, log, metric, node, training, trial
from orchestrator.record.trainings import evaluation_of
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Node, shape_of
from orchestrator.views.runs import Order
from orchestrator.views.states import TrialState
from workers.contract import Progress

MAX_LOG_BYTES: Final = 10 * 1_048_576
"""Of one attempt."""

WRITTEN_LAST: Final = 2**31 - 1
"""The number of a line of our own at the end of an attempt's log."""

_CUT_NOTE = "\n[the log is cut here: it passed 10 MiB]\n"


MOST_POINTS: Final = 2_000
"""Points that an attempt keeps of what training itself reports (`train/...`), which may come several times a second."""
LOOK_EVERY: Final = 500
"""Messages after which it is looked whether there are more."""


def append_points(connection: sa.Connection, attempt_id: int, seq: int, progress: Progress) -> None:
    """One row for each metric at this step; a point that is there already is kept.

    Of a long training the points of a curve of `train/...` are thinned evenly, so that it stays whole from its first
    minute and takes no more room. Evaluations are all kept: early stopping counts them.
    """
    if not progress.metrics:
        return
    now = datetime.now(UTC)
    rows = [
        {"attempt_id": attempt_id, "key": key, "step": progress.step, "value": finite_or_none(value), "at": now}
        for key, value in progress.metrics.items()
    ]
    connection.execute(_adding(connection.dialect.name), rows)
    if seq % LOOK_EVERY == 0:
        for key in progress.metrics:
            if key.startswith("train/"):
                _thin(connection, attempt_id, key)


@functools.cache
def _adding(dialect: str) -> sa.Insert:
    """Made once: every message has points."""
    return insertion_of(dialect, metric).on_conflict_do_nothing(index_elements=["attempt_id", "key", "step"])


def _thin(connection: sa.Connection, attempt_id: int, key: str) -> None:
    """Leave the first point of each of so many equal stretches, and the last one."""
    own = (metric.c.attempt_id == attempt_id, metric.c.key == key)
    rows = connection.execute(sa.select(metric.c.id, metric.c.step).where(*own).order_by(metric.c.step)).all()
    if len(rows) <= MOST_POINTS:
        return
    width = (rows[-1].step - rows[0].step) / (MOST_POINTS // 2)
    first = {int((row.step - rows[0].step) / width): row.id for row in reversed(rows)}
    kept = {*first.values(), rows[-1].id}
    for chunk in chunked([row.id for row in rows if row.id not in kept], 500):
        connection.execute(sa.delete(metric).where(metric.c.id.in_(chunk)))


def append_log(connection: sa.Connection, attempt: sa.Row[Any], seq: int, text: str) -> int:
    """Append a chunk to the training's log and return the attempt's size of it so far, in bytes."""
    if attempt.log_bytes > MAX_LOG_BYTES:
        return int(attempt.log_bytes)
    encoded = storable(text).encode()
    size = attempt.log_bytes + len(encoded)
    if size > MAX_LOG_BYTES:
        size = MAX_LOG_BYTES + 1  # says that the note is written
        encoded = encoded[: MAX_LOG_BYTES - attempt.log_bytes]
        text = encoded.decode("utf-8", "ignore") + _CUT_NOTE
    write_log(connection, attempt.training_id, attempt.id, seq, storable(text))
    return int(size)


def write_log(connection: sa.Connection, training_id: int, attempt_id: int, seq: int, text: str) -> None:
    """A chunk at the end of the training's log; `seq` is unique in the attempt, 0 for what we write ourselves."""
    length = connection.execute(_LONGER, {"mine": training_id, "more": len(text)}).scalar_one()
    row = {"attempt_id": attempt_id, "seq": seq, "start": length - len(text), "text": text}
    connection.execute(_CHUNK, row)


_LONGER: Final = (
    sa.update(training)
    .where(training.c.id == sa.bindparam("mine"))
    .values(log_length=training.c.log_length + sa.bindparam("more", type_=sa.Integer))
    .returning(training.c.log_length)
)
_CHUNK: Final = sa.insert(log)


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
