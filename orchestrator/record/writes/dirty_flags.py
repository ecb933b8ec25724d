"""Dirty marks: what MLflow does not show yet, written in the transaction that changed it; and who else is told."""

from typing import Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import insertion
from orchestrator.record.schema import outbox
from orchestrator.record.writes.changes import note
from orchestrator.record.writes.deliveries import tell_state
from orchestrator.views.changes import ChangeKind

REST_SECONDS: Final = 5.0
"""How long what a training says on its way may wait: MLflow is told of several messages at once, of a short training
once altogether."""


def mark_sweep(connection: sa.Connection, sweep: int, state: str | None = None) -> None:
    """Note that a sweep changed, and which state it entered by that."""
    _upsert(connection, [{"kind": "sweep", "sweep_id": sweep, "entity": sweep}], 0.0)
    note(connection, ChangeKind.SWEEP, sweep, sweep, state)
    if state is not None:
        tell_state(connection, sweep, state)


def mark_cell(connection: sa.Connection, sweep: int, index: int) -> None:
    """Note that a cell changed."""
    _upsert(connection, [{"kind": "cell", "sweep_id": sweep, "entity": index}], 0.0)
    note(connection, ChangeKind.CELL, sweep, index)


def mark_whole(connection: sa.Connection, sweep: int, trials: list[int], cells: list[int]) -> None:
    """Note that the tracker is to be told of all these, though none changed; the sweep comes last."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for trial in trials], 0.0)
    _upsert(connection, [{"kind": "cell", "sweep_id": sweep, "entity": cell} for cell in cells], 0.0)
    _upsert(connection, [{"kind": "sweep", "sweep_id": sweep, "entity": sweep}], 0.0)


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]], rest: float = 0.0) -> None:
    """Note that the runs of trials changed, given as (sweep, trial); they may rest for so many seconds first."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows], rest)


def _upsert(connection: sa.Connection, rows: list[dict[str, object]], rest: float) -> None:
    if not rows:
        return
    # A mark that is being sent just now must outlive the sending: its version tells.
    again: dict[str, object] = {"version": outbox.c.version + 1}
    inserting = insertion(connection, outbox)
    if rest:
        inserting = inserting.values({"next_try": DatabaseSeconds() + rest})
    else:  # what rests is due now, and what failed is at once tried as it is now
        again["next_try"] = 0.0
    connection.execute(inserting.on_conflict_do_update(index_elements=["kind", "sweep_id", "entity"], set_=again), rows)
