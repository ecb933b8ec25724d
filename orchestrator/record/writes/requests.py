"""The conductor's inbox: what clients asked for, in order, and the sweeps that wait to be expanded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.record import schema
from orchestrator.record.database import Access
from orchestrator.record.existence import require_lasting, require_sweep
from orchestrator.record.schema import request
from orchestrator.record.writes.journal import MAX_MESSAGE, storable
from orchestrator.views.lifecycle import SweepState


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """What somebody asked for and nobody did yet."""

    id: int
    kind: str  # one of submissions.RequestKind
    sweep: int
    trial: int | None
    actor: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueuedSweep:
    """A sweep that has no trial rows yet."""

    id: int
    uid: str
    spec: dict[str, Any]


class Requests(Access):
    """What waits for the conductor's decision."""

    def requests(self) -> list[PendingRequest]:
        """Requests not applied yet, in the order in which they came."""
        query = sa.select(request).where(request.c.applied.is_(None)).order_by(request.c.id)
        with self._database.reading() as connection:
            return [
                PendingRequest(row.id, row.kind, row.sweep_id, row.trial_id, row.actor, row.arguments or {})
                for row in connection.execute(query)
            ]

    def applied(self, fence: int, request_id: int, outcome: str) -> None:
        """Note what became of a request; raises FencedError. The spec that it carried goes: its sweep has it now."""
        done = sa.update(request).where(request.c.id == request_id, request.c.applied.is_(None))
        said = storable(outcome)[:MAX_MESSAGE]
        with self._database.writing(fence) as connection:
            connection.execute(done.where(request.c.kind == "extend").values(arguments=None))
            connection.execute(done.values(applied=datetime.now(UTC), outcome=said))

    def require_standing(self, asked: PendingRequest) -> None:
        """Raise NotFoundError where a request's sweep is gone, ConflictError where an earlier request deletes it."""
        with self._database.reading() as connection:
            require_sweep(connection, asked.sweep)
            require_lasting(connection, asked.sweep, before=asked.id)

    def queued(self) -> list[QueuedSweep]:
        """Sweeps to expand, oldest first."""
        table = schema.sweep
        query = sa.select(table.c.id, table.c.uid, table.c.spec).where(table.c.state == SweepState.QUEUED)
        with self._database.reading() as connection:
            return [QueuedSweep(row.id, row.uid, row.spec) for row in connection.execute(query.order_by(table.c.id))]

    def active(self) -> bool:
        """Whether any sweep is queued or running."""
        table = schema.sweep
        unended = table.c.state.in_([SweepState.QUEUED, SweepState.RUNNING])
        with self._database.reading() as connection:
            return connection.execute(sa.select(table.c.id).where(unended).limit(1)).first() is not None
