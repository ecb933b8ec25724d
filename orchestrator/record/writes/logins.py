"""Those whom a provider of OpenID Connect logs in: which user each is, and the token of the browser that is let in."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.host.identity import digest, new_token
from orchestrator.record.database import Access
from orchestrator.record.reads.accounts import by_token
from orchestrator.record.schema import account, token
from orchestrator.record.steering import require_administrator
from orchestrator.record.writes.audit import tell
from orchestrator.views.accounts import Caller, LoginTerms, Person, Role, Scope
from orchestrator.views.errors import ConflictError, LoginRefusedError, NotFoundError

MOST_BROWSERS: Final = 50
"""Of a user at once; the oldest gives way."""
HOW: Final = "OpenID Connect"


class LoginWriter(Access):
    """Writes who came by a provider. Its word was checked before: it is the server itself that asks here."""

    def enter(self, person: Person, terms: LoginTerms) -> Caller:
        """Let a browser of somebody in; LoginRefusedError of who is no user, and becomes none, or is disabled.

        Who it is says the provider's own number alone: a name or an address that it tells is nobody's proof of being
        the user who has it.
        """
        with self._database.writing() as connection:
            row = _known(connection, person) or _made(connection, person, terms.new_users)
            if row.disabled is not None:
                raise LoginRefusedError(f"the user {row.name} is disabled here", person.subject)
            if person.role is not None and row.role != person.role:
                connection.execute(sa.update(account).where(account.c.id == row.id).values(role=person.role))
                tell(connection, "role given", f"user {row.name}", person.role, actor=HOW)
            number = _let_in(connection, row.id, terms.seconds)
            who = by_token(connection, number)
            assert who is not None, "it was made just now"
            tell(connection, "login", HOW, f"subject {person.subject}", who=who)
            return who

    def leave(self, number: int) -> bool:
        """End the token of a browser that a provider let in; whether it is one."""
        mine = (token.c.id == number, token.c.browser.is_(True))
        with self._database.writing() as connection:
            who = by_token(connection, number)
            ending = sa.update(token).where(*mine, token.c.revoked.is_(None)).values(revoked=datetime.now(UTC))
            if not connection.execute(ending).rowcount:
                return False
            tell(connection, "logout", HOW, who=who)
            return True

    def link(self, name: str, issuer: str, subject: str) -> None:
        """Say by which number a provider knows a user; NotFoundError, and ConflictError where that is taken."""
        with self._database.writing() as connection:
            require_administrator(connection)
            row = _named(connection, name)
            if (row.issuer, row.subject) == (issuer, subject):
                return
            if row.subject is not None:
                raise ConflictError(f"{name!r} is linked with {row.subject!r} of {row.issuer}; unlink it first")
            linking = sa.update(account).where(account.c.id == row.id).values(issuer=issuer, subject=subject)
            try:
                with connection.begin_nested():
                    connection.execute(linking)
            except IntegrityError:
                raise ConflictError(f"{subject!r} of {issuer} is another user's login") from None
            tell(connection, "login linked", f"user {name}", f"{subject} of {issuer}")

    def unlink(self, name: str) -> None:
        """Have no provider log a user in, and end the browsers that one let in; NotFoundError."""
        with self._database.writing() as connection:
            require_administrator(connection)
            row = _named(connection, name)
            if row.subject is None:
                return
            connection.execute(sa.update(account).where(account.c.id == row.id).values(issuer=None, subject=None))
            connection.execute(sa.update(token).where(*_open(row.id)).values(revoked=datetime.now(UTC)))
            tell(connection, "login unlinked", f"user {name}", f"{row.subject} of {row.issuer}")


def _known(connection: sa.Connection, person: Person) -> sa.Row[Any] | None:
    mine = (account.c.issuer == person.issuer, account.c.subject == person.subject)
    return connection.execute(sa.select(account).where(*mine)).one_or_none()


def _made(connection: sa.Connection, person: Person, role: Role | None) -> sa.Row[Any]:
    if role is None:
        raise LoginRefusedError("no user here is linked with this login", person.subject)
    if person.name is None:
        raise LoginRefusedError("the provider gives no name that could be a user's here", person.subject)
    values = {
        "name": person.name, "role": person.role or role, "created": datetime.now(UTC), "issuer": person.issuer,
        "subject": person.subject,
    }  # fmt: skip
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(account).values(values))
    except IntegrityError:
        said = f"there is a user {person.name} here already, who is not linked with this login"
        raise LoginRefusedError(said, person.subject) from None
    tell(connection, "user added", f"user {person.name}", f"{values['role']}, subject {person.subject}", actor=HOW)
    return _named(connection, person.name)


def _let_in(connection: sa.Connection, whose: int, seconds: float) -> int:
    now = datetime.now(UTC)
    over = sa.or_(token.c.revoked.is_not(None), token.c.expires <= now)
    # The audit names tokens by number alone, and keeps what became of these.
    connection.execute(sa.delete(token).where(token.c.account_id == whose, token.c.browser.is_(True), over))
    kept = sa.select(token.c.id).where(*_open(whose)).order_by(token.c.id.desc()).limit(MOST_BROWSERS - 1)
    rest = (*_open(whose), token.c.id.not_in(connection.execute(kept).scalars().all()))
    connection.execute(sa.update(token).where(*rest).values(revoked=now))
    values = {
        "account_id": whose, "name": "browser", "hash": digest(new_token()), "scope": Scope.ADMIN, "created": now,
        "expires": now + timedelta(seconds=seconds), "browser": True,
    }  # fmt: skip
    return int(connection.execute(sa.insert(token).values(values).returning(token.c.id)).scalar_one())


def _open(whose: int) -> tuple[sa.ColumnElement[bool], ...]:
    return token.c.account_id == whose, token.c.browser.is_(True), token.c.revoked.is_(None)


def _named(connection: sa.Connection, name: str) -> sa.Row[Any]:
    row = connection.execute(sa.select(account).where(account.c.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(f"no user named {name!r}")
    return row
