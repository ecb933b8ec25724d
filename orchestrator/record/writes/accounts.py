"""Users, projects and tokens, written by the owner's commands, by administrators, and by everybody their own tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.record.database import Access, insertion
from orchestrator.record.schema import account, membership, project, token
from orchestrator.record.steering import require_administrator, require_own_tokens, rights
from orchestrator.record.writes.audit import tell
from orchestrator.views.accounts import Role, Scope
from orchestrator.views.errors import ConflictError, NotAllowedError, NotFoundError

MOST_TOKENS: Final = 100
"""Of a user, that open something."""
FOR_ADMINISTRATORS: Final = frozenset({Scope.ADMIN, Scope.METRICS})
"""Scopes that open what is of all projects: nobody else makes tokens of these."""


class AccountWriter(Access):
    """Writes who may do what; each change holds from the next request on. NotAllowedError of who may not."""

    def add_project(self, name: str, *, everyone: bool) -> None:
        """Make a project; ConflictError where there is one of this name. `everyone`: every user sees it."""
        with self._administering() as connection:
            _add(connection, project, f"a project named {name!r}", name=name, open=everyone)
            tell(connection, "project added", f"project {name}", "open" if everyone else "closed")

    def open_project(self, name: str, *, everyone: bool) -> None:
        """Have a project be seen by every user, or by its members alone; NotFoundError."""
        with self._administering() as connection:
            number = _id(connection, project, "project", name)
            connection.execute(sa.update(project).where(project.c.id == number).values(open=everyone))
            tell(connection, "project opened" if everyone else "project closed", f"project {name}")

    def add_user(self, name: str, role: Role, where: str | None = None) -> None:
        """Make a user, in a project or none; ConflictError where there is one of this name, NotFoundError."""
        with self._administering() as connection:
            if where is not None:
                _id(connection, project, "project", where)
            _add(connection, account, f"a user named {name!r}", name=name, role=role)
            tell(connection, "user added", f"user {name}", role)
            if where is not None:
                _join(connection, name, where, steers=role is not Role.VIEWER)

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
        with self._administering() as connection:
            _join(connection, name, where, steers=steers)

    def leave(self, name: str, where: str) -> None:
        """Have a user be in a project no more; NotFoundError."""
        with self._administering() as connection:
            mine = (membership.c[key] == value for key, value in _place(connection, name, where).items())
            if connection.execute(sa.delete(membership).where(*mine)).rowcount == 0:
                raise NotFoundError(f"{name!r} is not in the project {where!r}")
            tell(connection, "project left", f"user {name}", where)

    def add_token(self, user: str, name: str, digest: str, scope: Scope, expires: datetime | None) -> tuple[int, bool]:
        """Keep the hash of a new token; its number, and whether it is new: the same hash is kept once.

        Raises NotFoundError where there is no such user, ConflictError where the hash is of another token, or of one
        that opens nothing any more, or where the user has too many.
        """
        with self._database.writing() as connection:
            who = require_own_tokens(connection, user)
            number = _id(connection, account, "user", user)
            if not who.administers and scope in FOR_ADMINISTRATORS:
                raise NotAllowedError(f"a token of the scope {scope} is made by an administrator")
            if not who.administers and expires is None:
                raise NotAllowedError("a token that never runs out is made by an administrator; say for how many days")
            alike = sa.select(token).where(token.c.hash == digest)
            known = connection.execute(alike).one_or_none()
            if known is not None:
                return _same(known, number, name, scope), False
            _require_few(connection, number, user)
            values = {
                "account_id": number, "name": name, "hash": digest, "scope": scope, "created": datetime.now(UTC),
                "expires": expires,
            }  # fmt: skip
            adding = insertion(connection, token).values(values).on_conflict_do_nothing(index_elements=["hash"])
            added = connection.execute(adding.returning(token.c.id)).scalar_one_or_none()
            if added is None:  # the same request, sent twice at once, was quicker
                return _same(connection.execute(alike).one(), number, name, scope), False
            tell(connection, "token added", f"token {added}", f"{user}, {name}, {scope}")
            return int(added), True

    def revoke(self, number: int) -> None:
        """Have a token, and the sessions that began with it, open nothing from now on; NotFoundError.

        To who may not, a token of somebody else is none.
        """
        query = sa.select(account.c.name).join(token, token.c.account_id == account.c.id).where(token.c.id == number)
        with self._database.writing() as connection:
            whose = connection.execute(query).scalar_one_or_none()
            who = rights(connection)
            if whose is None or not (who.administers or who.name == whose):
                raise NotFoundError(f"no token {number}")
            require_own_tokens(connection, whose)
            ending = sa.update(token).where(token.c.id == number, token.c.revoked.is_(None))
            if connection.execute(ending.values(revoked=datetime.now(UTC))).rowcount:
                tell(connection, "token revoked", f"token {number}")

    def _set(self, name: str, values: dict[str, Any], what: str, detail: str = "") -> None:
        with self._administering() as connection:
            number = _id(connection, account, "user", name)
            connection.execute(sa.update(account).where(account.c.id == number).values(values))
            tell(connection, what, f"user {name}", detail)

    @contextmanager
    def _administering(self) -> Iterator[sa.Connection]:
        with self._database.writing() as connection:
            require_administrator(connection)
            yield connection


def _add(connection: sa.Connection, table: sa.Table, what: str, **values: Any) -> None:
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(**values, created=datetime.now(UTC)))
    except IntegrityError:
        raise ConflictError(f"there is {what} already") from None


def _join(connection: sa.Connection, name: str, where: str, *, steers: bool) -> None:
    keys = _place(connection, name, where)
    adding = insertion(connection, membership).values(**keys, steers=steers)
    connection.execute(adding.on_conflict_do_update(index_elements=list(keys), set_={"steers": steers}))
    tell(connection, "project joined", f"user {name}", f"{where}, {'member' if steers else 'viewer'}")


def _same(known: sa.Row[Any], whose: int, name: str, scope: Scope) -> int:
    """The number of a token that is there; ConflictError unless it opens, and is what is asked for."""
    if (known.account_id, known.name, known.scope) != (whose, name, scope):
        raise ConflictError(f"the idempotency key belongs to token {known.id}, which is another one")
    if known.revoked is not None or (known.expires is not None and known.expires <= datetime.now(UTC)):
        raise ConflictError(f"the idempotency key belongs to token {known.id}, which opens nothing any more")
    return int(known.id)


def _require_few(connection: sa.Connection, whose: int, user: str) -> None:
    opens = (token.c.revoked.is_(None), sa.or_(token.c.expires.is_(None), token.c.expires > datetime.now(UTC)))
    shown = token.c.browser.is_not(True)  # browsers have a number of their own
    query = sa.select(sa.func.count()).select_from(token).where(token.c.account_id == whose, shown, *opens)
    if connection.execute(query).scalar_one() >= MOST_TOKENS:
        raise ConflictError(f"{user!r} has {MOST_TOKENS} tokens that open something; revoke one first")


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
