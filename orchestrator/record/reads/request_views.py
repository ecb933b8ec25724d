"""What clients asked for, and what became of it, as clients see it; it outlives the sweeps that were deleted."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.existence import REFUSED, require_sweep
from orchestrator.record.reads.cursors import decode, encode
from orchestrator.record.schema import request
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import Page
from orchestrator.views.requests import RequestView

MOST_SHOWN: Final = 10
"""The latest requests that a sweep's view holds."""


class RequestViews(Access):
    """Reads requests."""

    def request(self, number: int) -> RequestView:
        """One request; raises NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(request).where(request.c.id == number)).one_or_none()
        if row is None:
            raise NotFoundError(f"no request {number}")
        return _view(row)

    def requests_of(self, sweep: int, cursor: str | None = None, limit: int = 50) -> Page[RequestView]:
        """What was asked of a sweep, newest first, also of a deleted one; raises NotFoundError where there is none."""
        query = sa.select(request).where(request.c.sweep_id == sweep).order_by(request.c.id.desc()).limit(limit + 1)
        if cursor is not None:
            query = query.where(request.c.id < decode(cursor))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            if not rows and cursor is None:
                require_sweep(connection, sweep)
        more = encode(rows[limit - 1].id) if len(rows) > limit else None
        return Page[RequestView](items=[_view(row) for row in rows[:limit]], next_cursor=more)


def latest_requests(connection: sa.Connection, sweep: int) -> Sequence[RequestView]:
    """The last things that were asked of a sweep, newest first."""
    query = sa.select(request).where(request.c.sweep_id == sweep).order_by(request.c.id.desc()).limit(MOST_SHOWN)
    return [_view(row) for row in connection.execute(query)]


def _view(row: sa.Row[Any]) -> RequestView:
    state: Literal["waiting", "done", "refused"] = "waiting"
    if row.applied is not None:
        state = "refused" if (row.outcome or "").startswith(REFUSED) else "done"
    arguments = row.arguments if isinstance(row.arguments, dict) else {}
    return RequestView(
        id=row.id, kind=row.kind, sweep=row.sweep_id, trial=row.trial_id, cell=arguments.get("cell"), actor=row.actor,
        created=row.created, state=state, applied=row.applied,
        outcome=(row.outcome or "").removeprefix(REFUSED) or None,
    )  # fmt: skip
