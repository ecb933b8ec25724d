"""Users, projects and tokens, as the owner's commands write them: no route of the API does."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.record.account_tables import account, membership, project, token
from orchestrator.record.database import Access, insertion
from orchestrator.record.writes.audit import tell
from orchestrator.views.callers import Role, Scope
from orchestrator.views.errors import ConflictError, NotFoundError


class AccountWriter(Access):
    """Writes who may do what; each change holds from the next request on."""

    def add_project(self, name: str, *, everyone: bool) -> None:
        """Make a project; ConflictError where there is one of this name. `everyone`: every user sees it."""
        with self._database.writing() as connection:
            _add(connection, project, f"a project named {name!r}", name=name, open=everyone)
            tell(connection, "project added", f"project {name}", "open" if everyone else "closed")

    def open_project(self, name: str, *, everyone: bool) -> None:
        """Have a project be seen by every user, or by its members alone; NotFoundError."""
        with self._database.writing() as connection:
            number = _id(connection, project, "project", name)
            connection.execute(sa.update(project).where(project.c.id == number).values(open=everyone))
            tell(connection, "project opened" if everyone else "project closed", f"project {name}")

    def add_user(self, name: str, role: Role) -> None:
        """Make a user, who is in no project yet; ConflictError where there is one of this name."""
        with self._database.writing() as connection:
            _add(connection, account, f"a user named {name!r}", name=name, role=role)
            tell(connection, "user added", f"user {name}", role)

    def set_role(self, name: str, role: Role) -> None:
        """Give a user another role; NotFoundError."""
        self._set(name, {"role": role}, "role given", role)

    def disable(self, name: str, *, disabled: bool) -> None:
        """Have nothing of a user's open anything, or all of it again; NotFoundError."""
        self._set(
            name, {"disabled": datetime.now(UTC) if disabled else None}, "user disabled" if disabled else "user enabled"
        )

    def join(self, name: str, where: str, *, steers: bool) -> None:
        """Have a user be in a project, to look or to steer; NotFoundError."""
        with self._database.writing() as connection:
            keys = _place(connection, name, where)
            adding = insertion(connection, membership).values(**keys, steers=steers)
            connection.execute(adding.on_conflict_do_update(index_elements=list(keys), set_={"steers": steers}))
            tell(connection, "project joined", f"user {name}", f"{where}, {'member' if steers else 'viewer'}")

    def leave(self, name: str, where: str) -> None:
        """Have a user be in a project no more; NotFoundError."""
        with self._database.writing() as connection:
            mine = (membership.c[key] == value for key, value in _place(connection, name, where).items())
            if connection.execute(sa.delete(membership).where(*mine)).rowcount == 0:
                raise NotFoundError(f"{name!r} is not in the project {where!r}")
            tell(connection, "project left", f"user {name}", where)

    def add_token(self, user: str, name: str, digest: str, scope: Scope, expires: datetime | None) -> int:
        """Keep the hash of a new token; gives its number. NotFoundError where there is no such user."""
        with self._database.writing() as connection:
            values = {
                "account_id": _id(connection, account, "user", user), "name": name, "hash": digest, "scope": scope,
                "created": datetime.now(UTC), "expires": expires,
            }  # fmt: skip
            added = int(connection.execute(sa.insert(token).values(values).returning(token.c.id)).scalar_one())
            tell(connection, "token added", f"token {added}", f"{user}, {name}, {scope}")
            return added

    def revoke(self, number: int) -> None:
        """Have a token, and the sessions that began with it, open nothing from now on; NotFoundError."""
        with self._database.writing() as connection:
            known = connection.execute(sa.select(token.c.revoked).where(token.c.id == number)).one_or_none()
            if known is None:
                raise NotFoundError(f"no token {number}")
            ending = sa.update(token).where(token.c.id == number, token.c.revoked.is_(None))
            connection.execute(ending.values(revoked=datetime.now(UTC)))
            tell(connection, "token revoked", f"token {number}")

    def _set(self, name: str, values: dict[str, Any], what: str, detail: str = "") -> None:
        with self._database.writing() as connection:
            number = _id(connection, account, "user", name)
            connection.execute(sa.update(account).where(account.c.id == number).values(values))
            tell(connection, what, f"user {name}", detail)


def _add(connection: sa.Connection, table: sa.Table, what: str, **values: Any) -> None:
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(**values, created=datetime.now(UTC)))
    except IntegrityError:
        raise ConflictError(f"there is {what} already") from None


def _place(connection: sa.Connection, name: str, where: str) -> dict[str, int]:
    return {
        "account_id": _id(connection, account, "user", name),
        "project_id": _id(connection, project, "project", where),
    }


def _id(connection: sa.Connection, table: sa.Table, kind: str, name: str) -> int:
    number = connection.execute(sa.select(table.c.id).where(table.c.name == name)).scalar_one_or_none()
    if number is None:
        raise NotFoundError(f"no {kind} named {name!r}")
    return int(number)
