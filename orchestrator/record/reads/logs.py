"""Logs of trials, a page at a time."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.reads.sources import with_source
from orchestrator.record.reads.trials import training_of
from orchestrator.record.schema import attempt, log, training
from orchestrator.views.states import TRIAL_ENDED
from orchestrator.views.trials import LogView

MAX_LOG_PAGE: Final = 262_144
"""Characters of a log in one answer."""


class LogReader(Access):
    """Reads logs."""

    def of(self, trial: int, offset: int = 0) -> LogView:
        """At most 256 Ki characters of a training's log from a character on, counted from its end when negative.

        After it stands that of the evaluation of its kept weights, where there is one. Raises NotFoundError.
        """
        columns = sa.select(training.c.id, training.c.state, training.c.log_length)
        with self._database.reading() as connection:
            told = [connection.execute(columns.where(training.c.id == one)).one() for one in _told(connection, trial)]
            length = sum(row.log_length for row in told)
            if offset < 0:
                offset = max(0, length + offset)
            text, before = "", 0
            for row in told:
                if before <= offset + len(text) < before + row.log_length and len(text) < MAX_LOG_PAGE:
                    text += _log_text(connection, row.id, offset + len(text) - before)
                before += row.log_length
        text = text[:MAX_LOG_PAGE]
        following = offset + len(text)
        return LogView(
            trial=trial,
            text=text,
            offset=offset,
            next_offset=following,
            complete=all(row.state in TRIAL_ENDED for row in told) and following >= length,
        )


def _told(connection: sa.Connection, trial: int) -> list[int]:
    """The trainings of which the log of a trial tells: its own after its source, and what it is evaluated for."""
    own = with_source(connection, training_of(connection, trial))
    query = sa.select(schema.trial.c.evaluation_id).where(schema.trial.c.id == trial)
    evaluation = connection.execute(query).scalar()
    return own if evaluation is None else [*own, evaluation]


def _log_text(connection: sa.Connection, training_id: int, offset: int) -> str:
    query = (
        sa.select(log.c.start, log.c.text)
        .join(attempt, attempt.c.id == log.c.attempt_id)
        .where(attempt.c.training_id == training_id)
        .where(log.c.start + sa.func.length(log.c.text) > offset, log.c.start < offset + MAX_LOG_PAGE)
        .order_by(log.c.start)
    )
    rows = connection.execute(query).all()
    if not rows:
        return ""
    begin = offset - rows[0].start
    return "".join(row.text for row in rows)[begin : begin + MAX_LOG_PAGE]
