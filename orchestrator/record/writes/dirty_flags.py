"""Dirty marks: what MLflow does not show yet, written in the transaction that changed it; and who else is told."""

import functools
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.clock import DatabaseSeconds
from orchestrator.record.database import insertion_of
from orchestrator.record.schema import outbox, trial
from orchestrator.record.writes.changes import note
from orchestrator.record.writes.deliveries import tell_state
from orchestrator.views.runs import ChangeKind

REST_SECONDS: Final = 5.0
"""How long what a training says on its way may wait: MLflow is told of several messages at once, of a short training
once altogether."""
MAY_BE_SHOWN: Final = sa.or_(trial.c.started.is_not(None), trial.c.mlflow_run.is_not(None))
"""Whether the tracker may show a run of a trial: that of one which has begun may be on its way there, and is noted only
once it was told. Not for RETURNING: there SQLite 3.40 says so of every row."""


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


def may_be_shown(row: sa.Row[Any]) -> bool:
    """`MAY_BE_SHOWN` of a row of trials that was read or returned."""
    return row.started is not None or row.mlflow_run is not None


def mark_trials(connection: sa.Connection, rows: list[tuple[int, int]], rest: float = 0.0) -> None:
    """Note that the runs of trials changed, given as (sweep, trial); they may rest for so many seconds first."""
    _upsert(connection, [{"kind": "trial", "sweep_id": sweep, "entity": trial} for sweep, trial in rows], rest)


def _upsert(connection: sa.Connection, rows: list[dict[str, object]], rest: float) -> None:
    if not rows:
        return
    connection.execute(_marking(connection.dialect.name, rest), rows)


@functools.cache
def _marking(dialect: str, rest: float) -> sa.Insert:
    """Made once for each of the few rests that there are: every training marks itself several times."""
    # A mark that is being sent just now must outlive the sending: its version tells.
    again: dict[str, object] = {"version": outbox.c.version + 1}
    inserting = insertion_of(dialect, outbox)
    if rest:
        inserting = inserting.values({"next_try": DatabaseSeconds() + rest})
    else:  # what rests is due now, and what failed is at once tried as it is now
        again["next_try"] = 0.0
    return inserting.on_conflict_do_update(index_elements=["kind", "sweep_id", "entity"], set_=again)
