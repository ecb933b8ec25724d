"""Dirty marks: what MLflow does not show yet, written in the transaction that changed it."""

import sqlalchemy as sa

from orchestrator.record.database import Database
from orchestrator.record.schema import outbox


def mark(database: Database, connection: sa.Connection, kind: str, sweep: int, entity: int) -> None:
    """Note that one trial (by id), cell (by index) or sweep (by id) changed."""
    _upsert(database, connection, [{"kind": kind, "sweep_id": sweep, "entity": entity}])


def mark_trials(database: Database, connection: sa.Connection, rows: list[tuple[int, int]]) -> None:
    """Note that trials changed, given as (sweep, trial)."""
    _upsert(database, connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows])


def _upsert(database: Database, connection: sa.Connection, rows: list[dict[str, object]]) -> None:
    if not rows:
        return
    # A mark that is being sent just now must outlive the sending: its version tells.
    insertion = database.insert(outbox)
    connection.execute(
        insertion.on_conflict_do_update(
            index_elements=["kind", "sweep_id", "entity"], set_={"version": outbox.c.version + 1}
        ),
        rows,
    )
