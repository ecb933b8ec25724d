"""Dirty marks: what MLflow does not show yet, written in the transaction that changed it."""

import sqlalchemy as sa

from orchestrator.record.database import insertion
from orchestrator.record.schema import outbox


def mark(connection: sa.Connection, kind: str, sweep: int, entity: int) -> None:
    """Note that one trial (by id), cell (by index) or sweep (by id) changed."""
    _upsert(connection, [{"kind": kind, "sweep_id": sweep, "entity": entity}])


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]]) -> None:
    """Note that trials changed, given as (sweep, trial)."""
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
