"""Changes: that a sweep, cell, trial or request is another than before, noted in the transaction that changed it.

Their ids grow in the order in which transactions end, so that who has read up to one misses none before it. SQLite has
one writer at a time; on Postgres those of the conductor wait for one another at the lease, and clients lock the table.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import sqlalchemy as sa

from orchestrator.record.database import FencedAccess
from orchestrator.record.schema import change, trial
from orchestrator.views.runs import ChangeKind
from orchestrator.views.states import TRIAL_ACTIVE

MOST_NAMED: Final = 100
"""Trials of a sweep that one transaction names: of more it is said that many changed."""
KEPT: Final = 20_000
"""Changes that are kept: some minutes of a busy cluster. Who comes back later is told to look anew."""

# Made once, since every training tells of itself.
_CHANGE: Final = sa.insert(change)
_CAME_FURTHER: Final = _CHANGE.from_select(
    ["kind", "sweep_id", "entity"],
    sa.select(sa.literal(ChangeKind.PROGRESS.value), trial.c.sweep_id, trial.c.id).where(
        trial.c.training_id == sa.bindparam("mine"), trial.c.state.in_(TRIAL_ACTIVE)
    ),
).returning(change.c.sweep_id, change.c.entity)


def note(connection: sa.Connection, kind: ChangeKind, sweep: int, entity: int, state: str | None = None) -> None:
    """Note that one thing changed; of a sweep, which state it entered."""
    row = {"kind": kind, "sweep_id": sweep, "entity": entity, "state": state}
    connection.execute(_CHANGE, [row])


def note_trials(connection: sa.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Note that trials entered a state, given as (sweep, trial)."""
    changed = list(dict.fromkeys(rows))
    many = {sweep for sweep, count in Counter(sweep for sweep, _ in changed).items() if count > MOST_NAMED}
    named = [(ChangeKind.TRIAL, sweep, one) for sweep, one in changed if sweep not in many]
    named += [(ChangeKind.TRIALS, sweep, sweep) for sweep in sorted(many)]
    if named:
        keys = ("kind", "sweep_id", "entity")
        connection.execute(_CHANGE, [dict(zip(keys, values, strict=True)) for values in named])


def note_progress(connection: sa.Connection, training_id: int) -> list[tuple[int, int]]:
    """Note that the active trials of a training came further; gives them as (sweep, trial)."""
    rows = connection.execute(_CAME_FURTHER, {"mine": training_id}).all()
    return [(row.sweep_id, row.entity) for row in rows]


def note_stalled(connection: sa.Connection, rows: Iterable[tuple[int, int]]) -> None:
    """Note that trials, given as (sweep, trial), were silent for too long."""
    for number, stalled in rows:
        note(connection, ChangeKind.STALLED, number, stalled)


def alone(connection: sa.Connection) -> None:
    """Let nobody else note a change before this transaction, which is no conductor's, has ended; called first in it."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE change IN EXCLUSIVE MODE")


class ChangeWriter(FencedAccess):
    """Keeps the changes few."""

    def prune(self) -> None:
        """Forget all but the latest."""
        newest = sa.select(sa.func.max(change.c.id)).scalar_subquery()
        with self._database.writing() as connection:
            connection.execute(sa.delete(change).where(change.c.id <= newest - KEPT))
