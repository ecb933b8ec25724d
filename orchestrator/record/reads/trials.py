"""Trials: a page of them, one with its attempts, its log, and what tells them apart."""

from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_sweep
from orchestrator.record.reads.cursors import decode, encode
from orchestrator.record.reads.joins import of_candidate
from orchestrator.record.schema import attempt, candidate, cell, log, training, trial
from orchestrator.views.errors import NotFoundError
from orchestrator.views.extension import TrialKey
from orchestrator.views.lifecycle import TRIAL_ACTIVE, TRIAL_ENDED, TrialState
from orchestrator.views.pages import Page
from orchestrator.views.trials import AttemptView, LogView, Replaced, TrialSummary, TrialView

MAX_LOG_PAGE: Final = 262_144
"""Characters of a log in one answer."""


class TrialReader(Access):
    """Reads trials."""

    def page(
        self,
        sweep: int,
        state: str | None = None,
        cell: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[TrialSummary]:
        """A sweep's trials in the order of its plan; raises NotFoundError."""
        table = schema.trial
        query = _summaries().where(table.c.sweep_id == sweep).order_by(table.c.position).limit(limit + 1)
        if state is not None:
            query = query.where(table.c.state == state)
        if cell is not None:
            query = query.where(table.c.cell == cell)
        if cursor is not None:
            query = query.where(table.c.position > decode(cursor))
        with self._database.reading() as connection:
            require_sweep(connection, sweep)
            rows = connection.execute(query).all()
        shown = rows[:limit]
        items = [TrialSummary(**_summary(row)) for row in shown]
        return Page[TrialSummary](items=items, next_cursor=encode(shown[-1].position) if len(rows) > limit else None)

    def get(self, trial: int) -> TrialView:
        """One trial whole; raises NotFoundError."""
        whole = (
            training.c.uid.label("training_uid"), training.c.fingerprint, training.c.recipe, training.c.metrics,
            training.c.best_step, training.c.seconds, training.c.result, training.c.trace, schema.trial.c.reason,
        )  # fmt: skip
        query = _summaries().add_columns(*whole, schema.sweep.c.name.label("sweep_name"))
        query = query.join(schema.sweep, schema.sweep.c.id == schema.trial.c.sweep_id)
        with self._database.reading() as connection:
            row = connection.execute(query.where(schema.trial.c.id == trial)).one_or_none()
            if row is None:
                raise NotFoundError(f"no trial {trial}")
            attempts = _attempts(connection, row.training_id)
            reused_from = first_trial(connection, row.training_id) if row.reused else None
            replaced = [
                Replaced(training=one.uid, step=one.step, total_steps=one.total_steps)
                for one in _predecessors(connection, row.training_id)
            ]
        result = row.result or {}
        return TrialView(
            **_summary(row), sweep_name=row.sweep_name, fingerprint=row.fingerprint, training=row.training_uid,
            recipe=row.recipe, attempts=attempts, metrics=row.metrics or {}, best_step=row.best_step,
            seconds=row.seconds, provenance=result.get("provenance", {}), reused_from=reused_from, trace=row.trace,
            replaced=replaced,
            reason=row.reason if row.state == TrialState.PRUNED else None,
        )  # fmt: skip

    def log(self, trial: int, offset: int = 0) -> LogView:
        """At most 256 Ki characters of a training's log from a character on, counted from its end when negative.

        Raises NotFoundError.
        """
        with self._database.reading() as connection:
            training_id = training_of(connection, trial)
            state, length = connection.execute(
                sa.select(training.c.state, training.c.log_length).where(training.c.id == training_id)
            ).one()
            if offset < 0:
                offset = max(0, length + offset)
            text = _log_text(connection, training_id, offset)
        following = offset + len(text)
        return LogView(
            trial=trial,
            text=text,
            offset=offset,
            next_offset=following,
            complete=state in TRIAL_ENDED and following >= length,
        )

    def keys(self, sweep: int) -> list[TrialKey]:
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

    def has_active(self, sweep: int, cell: int) -> bool:
        """Whether a trial of a cell waits or runs."""
        query = sa.select(schema.trial.c.id).where(schema.trial.c.sweep_id == sweep, schema.trial.c.cell == cell)
        with self._database.reading() as connection:
            return connection.execute(query.where(schema.trial.c.state.in_(TRIAL_ACTIVE)).limit(1)).first() is not None

    def last_position(self, sweep: int) -> int:
        """The position of a sweep's last trial; -1 when it has none."""
        query = sa.select(sa.func.coalesce(sa.func.max(schema.trial.c.position), -1)).where(
            schema.trial.c.sweep_id == sweep
        )
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())


def _summaries() -> sa.Select[Any]:
    table = schema.trial
    return (
        sa.select(
            table.c.id, table.c.uid, table.c.sweep_id, table.c.cell, table.c.candidate, table.c.repeat,
            table.c.position, table.c.repeat_labels, table.c.training_id, table.c.state, table.c.diverged,
            table.c.reused, training.c.step, training.c.total_steps, training.c.score, training.c.error,
            cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels"),
        )
        .select_from(table)
        .join(training, training.c.id == table.c.training_id)
        .join(cell, sa.and_(cell.c.sweep_id == table.c.sweep_id, cell.c.cell == table.c.cell))
        .join(candidate, of_candidate())
    )  # fmt: skip


def _summary(row: sa.Row[Any]) -> dict[str, Any]:
    finished, failed = row.state == TrialState.FINISHED, row.state == TrialState.FAILED
    return {
        "id": row.id, "uid": row.uid, "sweep": row.sweep_id, "cell": row.cell, "candidate": row.candidate,
        "repeat": row.repeat, "labels": {**row.cell_labels, **row.candidate_labels, **row.repeat_labels},
        "state": row.state, "diverged": row.diverged, "reused": row.reused, "step": row.step,
        "total_steps": row.total_steps, "score": row.score if finished else None,
        "error": (row.error or "failed") if failed else None,
    }  # fmt: skip


def _attempts(connection: sa.Connection, training_id: int) -> list[AttemptView]:
    query = sa.select(attempt).where(attempt.c.training_id == training_id).order_by(attempt.c.number)
    return [
        AttemptView(
            number=row.number, uid=row.uid, state=row.state, slot=row.holder, asked=row.slot, host=row.host,
            started=row.started, ended=row.ended, reason=row.reason, resumed_from=row.resumed_from,
        )
        for row in connection.execute(query)
    ]  # fmt: skip


def first_trial(connection: sa.Connection, training_id: int) -> int | None:
    """The first of the trials that the training was run for and that took its result."""
    table = schema.trial
    trained = (table.c.training_id == training_id, table.c.state == TrialState.FINISHED, ~table.c.reused)
    return connection.execute(sa.select(sa.func.min(table.c.id)).where(*trained)).scalar_one_or_none()


def training_of(connection: sa.Connection, trial: int) -> int:
    """The id of a trial's training; raises NotFoundError."""
    table = schema.trial
    found = connection.execute(sa.select(table.c.training_id).where(table.c.id == trial)).scalar_one_or_none()
    if found is None:
        raise NotFoundError(f"no trial {trial}")
    return int(found)


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


def _predecessors(connection: sa.Connection, heir: int) -> list[Any]:
    """The trainings whose trials moved to this one, those of the last release first, with what they had trained."""
    table = schema.training
    columns = (table.c.id, table.c.uid, table.c.stamp, table.c.step, table.c.total_steps)
    found: list[Any] = []
    wanted = [heir]
    while wanted:
        rows = connection.execute(sa.select(*columns).where(table.c.heir.in_(wanted)).order_by(table.c.id)).all()
        found += rows
        wanted = [row.id for row in rows]
    return found
