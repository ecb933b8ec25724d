"""Claims the next training for a slot, and records its progress and log."""

import uuid
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.changes import note_trials
from orchestrator.record.columns import finite_or_none, storable
from orchestrator.record.database import FencedAccess, chunked, insertion
from orchestrator.record.queue import NOTHING, RUNNING, Exclusions, Turn, first_waiting, order_names
from orchestrator.record.schema import attempt, collected, log, metric, node, training, trial
from orchestrator.record.trainings import evaluation_of
from orchestrator.spec.spec import Slot
from orchestrator.views.operations import SYSTEM, Node, shape_of
from orchestrator.views.runs import Order
from orchestrator.views.states import TrialState
from workers.contract import Progress

MAX_LOG_BYTES: Final = 10 * 1_048_576
"""The size of an attempt's log."""
WRITTEN_LAST: Final = 2**31 - 1
"""The `seq` of our own line at the end of an attempt's log."""
_CUT_NOTE = "\n[the log is cut here: it passed 10 MiB]\n"

MOST_POINTS: Final = 2_000
"""Points of a `train/...` or `system/...` curve that an attempt keeps; some come several times a second."""
LOOK_EVERY: Final = 500
"""Messages after which curves are thinned."""


def append_points(connection: sa.Connection, attempt_id: int, seq: int, progress: Progress) -> None:
    """Add the reported metrics of a step to the curves of an attempt; existing points are kept.

    Long `train/...` and `system/...` curves are thinned evenly. Evaluations are all kept: early stopping counts them.
    """
    if not progress.metrics:
        return
    now = datetime.now(UTC)
    rows = [
        {"attempt_id": attempt_id, "key": key, "step": progress.step, "value": finite_or_none(value), "at": now}
        for key, value in progress.metrics.items()
    ]
    adding = insertion(connection, metric).on_conflict_do_nothing(index_elements=["attempt_id", "key", "step"])
    connection.execute(adding, rows)
    if seq % LOOK_EVERY == 0:
        for key in progress.metrics:
            if key.startswith(("train/", SYSTEM)):
                _thin(connection, attempt_id, key)


def _thin(connection: sa.Connection, attempt_id: int, key: str) -> None:
    """Keep the first point of each of so many equal intervals, and the last point."""
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
    """Append a chunk of text to a training's log; returns the size of the attempt's log in bytes."""
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
    """Append text to a training's log.

    `seq` numbers the chunks of an attempt; 0 is the first line, which the conductor writes.
    """
    longer = sa.update(training).where(training.c.id == training_id)
    longer = longer.values(log_length=training.c.log_length + len(text)).returning(training.c.log_length)
    length = connection.execute(longer).scalar_one()
    row = {"attempt_id": attempt_id, "seq": seq, "start": length - len(text), "text": text}
    connection.execute(sa.insert(log), [row])


class ClaimWriter(FencedAccess):
    """Claims waiting trainings, so that each starts in one slot only."""

    def next(self, passed: Exclusions = NOTHING) -> Order | None:
        """Claim the next training of the queue; `None` if all waiting trainings are excluded by `passed`."""
        with self._database.reading() as connection:
            if first_waiting(connection, passed) is None:
                return None  # the usual case, without the writer's lock
        with self._database.writing() as connection:
            first = first_waiting(connection, passed)
            return None if first is None else _claim(connection, self._database.fence, first)


def _claim(connection: sa.Connection, fence: int, turn: Turn) -> Order:
    now, training_id, slot = datetime.now(UTC), turn.training, turn.slot
    claiming = (
        sa.update(training)
        .where(training.c.id == training_id, training.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(training.c.started, now))
        .returning(training.c.uid, training.c.recipe, training.c.need, training.c.source)
    )
    row = connection.execute(claiming).one()
    run_with_training(connection, training_id, now)
    number, resume = _number_and_resume(connection, training_id, row.uid)
    # The attempt will keep weights again.
    connection.execute(sa.delete(collected).where(collected.c.training_id == training_id))
    uid = str(uuid.uuid4())
    values = {
        "uid": uid, "training_id": training_id, "number": number, "state": RUNNING, "fence": fence,
        "slot": slot.model_dump(mode="json"), "resumed_from": resume, "started": now, "owner_id": turn.owner,
        "project_id": turn.project, "cpus": slot.cpus, "gpus": _gpus(connection, slot),
    }  # fmt: skip
    connection.execute(sa.insert(attempt), [values])
    if number > 1:
        attempt_id = connection.execute(sa.select(attempt.c.id).where(attempt.c.uid == uid)).scalar_one()
        write_log(connection, training_id, attempt_id, 0, f"--- attempt {number} ---\n")
    names = order_names(connection, training_id)
    evaluation = None if row.source is None else evaluation_of(connection, row.source, row.recipe)
    return Order(uid, row.uid, number, row.recipe, slot, resume, need=row.need, evaluation=evaluation, **names)


def _gpus(connection: sa.Connection, slot: Slot) -> float:
    """The GPUs that an attempt holds; `auto` depends on the present nodes."""
    if slot.gpus != "auto":
        return slot.gpus
    there = connection.execute(sa.select(node.c.uid, node.c.host, node.c.resources).where(node.c.alive))
    return shape_of(slot, [Node(row.uid, row.host, row.resources) for row in there]).gpus


def run_with_training(connection: sa.Connection, training_id: int, now: datetime) -> None:
    """Set the waiting trials of all sweeps that share a training to running."""
    begun = connection.execute(
        sa.update(trial)
        .where(trial.c.training_id == training_id, trial.c.state == TrialState.WAITING)
        .values(state=TrialState.RUNNING, started=sa.func.coalesce(trial.c.started, now))
        .returning(trial.c.sweep_id, trial.c.id)
    ).all()
    note_trials(connection, [(row.sweep_id, row.id) for row in begun])


def _number_and_resume(connection: sa.Connection, training_id: int, uid: str) -> tuple[int, str | None]:
    """The next attempt's number, and the latest checkpoint."""
    query = sa.select(attempt.c.number, attempt.c.checkpoint).where(attempt.c.training_id == training_id)
    earlier = connection.execute(query.order_by(attempt.c.number.desc())).all()
    number = earlier[0].number + 1 if earlier else 1
    kept = next((row for row in earlier if row.checkpoint), None)
    return number, f"{uid}/{kept.number}/{kept.checkpoint}" if kept else None
