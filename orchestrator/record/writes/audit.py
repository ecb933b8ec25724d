"""The audit's rows, each written in the transaction of what it tells: neither is there without the other."""

from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.host.logs import ids_of_now
from orchestrator.record.database import Access
from orchestrator.record.schema import audit
from orchestrator.record.writes.text import storable
from orchestrator.views.accounts import Caller, address, caller

MOST_DETAIL = 2_000
"""Characters of what was said."""


class AuditWriter(Access):
    """Tells of what changes nothing else in the database."""

    def entered(self, who: Caller, how: str) -> None:
        """Somebody logged a browser in."""
        with self._database.writing() as connection:
            tell(connection, "login", how, who=who)

    def refused(self, how: str, why: str) -> None:
        """Somebody was not let in; who that is, or says that they are, is part of why."""
        with self._database.writing() as connection:
            tell(connection, "login refused", how, why, actor="somebody")


def tell(
    connection: sa.Connection, what: str, target: str, detail: str = "", *, actor: str | None = None,
    who: Caller | None = None,
) -> None:  # fmt: skip
    """Add a row: who asks, from where and by which request is known; `actor` names who has no user."""
    asks = who or caller()
    connection.execute(
        sa.insert(audit).values(
            at=datetime.now(UTC), who=asks.name or actor or "owner", account_id=asks.user, token_id=asks.token,
            what=what, target=target, detail=storable(detail)[:MOST_DETAIL], address=address(),
            request=str(ids_of_now().get("request", "")),
        )
    )  # fmt: skip
