"""How much may be asked of a sweep before the conductor has done it: what waits is stored, and read at every turn."""

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from orchestrator.record.schema import request
from orchestrator.views.errors import ConflictError

MOST_WAITING: Final = 1_000
"""Requests of one kind for one sweep: people cancel trials one by one, and the conductor may be away meanwhile."""
MOST_WAITING_OF: Final[Mapping[str, int]] = {"extend": 4}
"""Those of kinds that carry much: an extension holds a whole spec."""


def require_room(connection: sa.Connection, sweep: int, kind: str) -> None:
    """Raise ConflictError where as many requests of this kind wait for the sweep as are taken."""
    most = MOST_WAITING_OF.get(kind, MOST_WAITING)
    waiting = sa.select(request.c.id).where(
        request.c.sweep_id == sweep, request.c.kind == kind, request.c.applied.is_(None)
    )
    if len(connection.execute(waiting.limit(most)).all()) == most:
        raise ConflictError(
            f"{most:,} requests of the kind '{kind}' wait for sweep {sweep} already, and no more are taken; "
            "ask again when the conductor has carried them out"
        )
