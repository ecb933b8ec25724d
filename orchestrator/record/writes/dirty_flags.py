"""Dirty marks: what MLflow does not show yet, written in the transaction that changed it; and that it changed."""

import sqlalchemy as sa

from orchestrator.record.database import insertion
from orchestrator.record.schema import outbox
from orchestrator.record.writes.changes import note
from orchestrator.views.changes import ChangeKind


def mark_sweep(connection: sa.Connection, sweep: int, state: str | None = None) -> None:
    """Note that a sweep changed, and which state it entered by that."""
    _upsert(connection, [{"kind": "sweep", "sweep_id": sweep, "entity": sweep}])
    note(connection, ChangeKind.SWEEP, sweep, sweep, state)


def mark_cell(connection: sa.Connection, sweep: int, index: int) -> None:
    """Note that a cell changed."""
    _upsert(connection, [{"kind": "cell", "sweep_id": sweep, "entity": index}])
    note(connection, ChangeKind.CELL, sweep, index)


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]]) -> None:
    """Note that the runs of trials changed, given as (sweep, trial)."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows])


def _upsert(connection: sa.Connection, rows: list[dict[str, object]]) -> None:
    if not rows:
        return
    # A mark that is being sent just now must outlive the sending: its version tells.
    connection.execute(
        insertion(connection, outbox).on_conflict_do_update(
            index_elements=["kind", "sweep_id", "entity"], set_={"version": outbox.c.version + 1}
        ),
        rows,
    )
