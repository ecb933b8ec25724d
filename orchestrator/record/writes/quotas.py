"""Quotas, as the owner's commands and administrators set them."""

import sqlalchemy as sa

from orchestrator.record.database import Access, insertion
from orchestrator.record.schema import account, project, quota
from orchestrator.record.steering import require_administrator
from orchestrator.record.writes.audit import tell
from orchestrator.views.accounts import Quota, QuotaKind
from orchestrator.views.errors import NotFoundError


class QuotaWriter(Access):
    """Sets quotas; the conductor heeds each within seconds."""

    def put(self, kind: QuotaKind, name: str, limits: Quota) -> None:
        """Give a user or a project this quota in place of another; one without limits takes it away. NotFoundError."""
        table, key = (account, "account_id") if kind == "user" else (project, "project_id")
        values = limits.model_dump()
        said = ", ".join(f"{what} {most:g}" for what, most in values.items() if most is not None)
        with self._database.writing() as connection:
            require_administrator(connection)
            number = connection.execute(sa.select(table.c.id).where(table.c.name == name)).scalar_one_or_none()
            if number is None:
                raise NotFoundError(f"no {kind} named {name!r}")
            if said:
                adding = insertion(connection, quota).values({key: number, **values})
                connection.execute(adding.on_conflict_do_update(index_elements=[key], set_=values))
            else:
                connection.execute(sa.delete(quota).where(quota.c[key] == number))
            tell(connection, "quota set" if said else "quota removed", f"{kind} {name}", said)
