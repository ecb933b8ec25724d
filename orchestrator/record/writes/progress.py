"""What an attempt reports on its way: points of curves and chunks of its log."""

import functools
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.database import chunked, insertion_of
from orchestrator.record.json_floats import finite_or_none
from orchestrator.record.schema import log, metric, training
from orchestrator.record.writes.text import storable
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
