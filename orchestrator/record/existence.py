"""Whether a sweep is there, and will stay: what every write asks first, within its own transaction."""

from typing import Any, Final

import sqlalchemy as sa

from orchestrator.record.schema import request, sweep
from orchestrator.views.errors import ConflictError, NotFoundError

DELETE: Final = "delete"
"""The kind of request that makes a sweep go."""
REFUSED: Final = "refused: "
"""What the outcome of a request that was not carried out begins with."""


_KNOWN: Final = sa.select(sweep.c.id).where(sweep.c.id == sa.bindparam("wanted"))


def require_sweep(connection: sa.Connection, wanted: int) -> None:
    """Raise NotFoundError unless the sweep exists; it says when and for whom one was deleted."""
    if connection.execute(_KNOWN, {"wanted": wanted}).first() is None:
        raise NotFoundError(absence(connection, wanted))


def absence(connection: sa.Connection, wanted: int) -> str:
    """Why there is no such sweep, in words."""
    deletions = _deletions(wanted).where(request.c.applied.is_not(None), ~request.c.outcome.startswith(REFUSED))
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is None:
        return f"no sweep {wanted}"
    return f"no sweep {wanted}: it was deleted at {row.applied:%Y-%m-%d %H:%M} UTC{asked_by(row)}"


def require_lasting(connection: sa.Connection, wanted: int, before: int | None = None) -> None:
    """Raise ConflictError where the sweep is about to be deleted; `before`: by an earlier request than this one."""
    deletions = _deletions(wanted).where(request.c.applied.is_(None))
    if before is not None:
        deletions = deletions.where(request.c.id < before)
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is not None:
        raise ConflictError(
            f"sweep {wanted} is about to be deleted{asked_by(row)}; nothing more can be asked of it, and a copy of it "
            "can be submitted as a new sweep"
        )


def _deletions(wanted: int) -> sa.Select[Any]:
    return sa.select(request).where(request.c.sweep_id == wanted, request.c.kind == DELETE)


def asked_by(row: sa.Row[Any]) -> str:
    """Who asked for a request, if that is known, and which it is: to be put behind what it did."""
    return f", as {row.actor} asked (request {row.id})" if row.actor else f" (request {row.id})"
