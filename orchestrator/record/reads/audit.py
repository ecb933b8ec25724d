"""The audit, read in its order."""

from collections.abc import Iterator

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.schema import audit
from orchestrator.views.accounts import AuditEntry

_CHUNK = 1_000


class AuditReader(Access):
    """Reads the audit."""

    def after(self, number: int) -> Iterator[AuditEntry]:
        """The entries after a number, the oldest first; each thousand in a transaction of its own."""
        while True:
            query = sa.select(audit).where(audit.c.id > number).order_by(audit.c.id).limit(_CHUNK)
            with self._database.reading() as connection:
                rows = connection.execute(query).all()
            for row in rows:
                yield AuditEntry(
                    id=row.id, at=row.at, who=row.who, user=row.account_id, token=row.token_id, what=row.what,
                    target=row.target, detail=row.detail, address=row.address, request=row.request,
                )  # fmt: skip
            if len(rows) < _CHUNK:
                return
            number = rows[-1].id
