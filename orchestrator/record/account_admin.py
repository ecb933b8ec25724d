"""Writes of users, projects, tokens, logins, quotas and share links."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from orchestrator.host.identity import digest, new_token
from orchestrator.record.accounts import (
    audit_event,
    by_token,
    is_valid,
    named,
    require_administrator,
    require_own_tokens,
    require_steered,
    rights,
)
from orchestrator.record.changes import lock_changes
from orchestrator.record.database import Access, insertion, upsert
from orchestrator.record.schema import account, membership, project, quota, share, token
from orchestrator.views.accounts import (
    SHARED_PATH,
    Caller,
    LoginTerms,
    NewShareView,
    Person,
    Quota,
    QuotaKind,
    Role,
    Scope,
    ShareView,
    caller,
)
from orchestrator.views.errors import ConflictError, LoginRefusedError, NotAllowedError, NotFoundError

MOST_TOKENS: Final = 100
"""Valid tokens of a user."""
_FOR_ADMINISTRATORS: Final = frozenset({Scope.ADMIN, Scope.METRICS})
"""Scopes that open all projects: only administrators make tokens with these."""


class _Administration(Access):
    @contextmanager
    def _administering(self) -> Iterator[sa.Connection]:
        with self._database.writing() as connection:
            require_administrator(connection)
            yield connection


class AccountWriter(_Administration):
    """Writes users, projects, tokens and quotas. Methods raise NotAllowedError if the caller may not."""

    def add_project(self, name: str, *, everyone: bool) -> None:
        """Add a project; raises ConflictError if the name is taken. `everyone`: every user sees it."""
        with self._administering() as connection:
            _add(connection, project, f"a project named {name!r}", name=name, open=everyone)
            audit_event(connection, "project added", f"project {name}", "open" if everyone else "closed")

    def open_project(self, name: str, *, everyone: bool) -> None:
        """Make a project visible to every user, or to its members only; raises NotFoundError."""
        with self._administering() as connection:
            number = named(connection, project, name).id
            connection.execute(sa.update(project).where(project.c.id == number).values(open=everyone))
            audit_event(connection, "project opened" if everyone else "project closed", f"project {name}")

    def add_user(self, name: str, role: Role, where: str | None = None) -> None:
        """Add a user, and its membership in a project; raises ConflictError if the name is taken, NotFoundError."""
        with self._administering() as connection:
            if where is not None:
                named(connection, project, where)
            _add(connection, account, f"a user named {name!r}", name=name, role=role)
            audit_event(connection, "user added", f"user {name}", role)
            if where is not None:
                _join(connection, name, where, steers=role is not Role.VIEWER)

    def set_role(self, name: str, role: Role) -> None:
        """Give a user another role; raises NotFoundError."""
        self._set(name, {"role": role}, "role given", role)

    def disable(self, name: str, *, disabled: bool) -> None:
        """Disable a user together with all its API tokens, or enable it again; raises NotFoundError."""
        what = "user disabled" if disabled else "user enabled"
        self._set(name, {"disabled": datetime.now(UTC) if disabled else None}, what)

    def join(self, name: str, where: str, *, steers: bool) -> None:
        """Add a user to a project, as a member who submits (`steers`) or as a viewer; raises NotFoundError."""
        with self._administering() as connection:
            _join(connection, name, where, steers=steers)

    def leave(self, name: str, where: str) -> None:
        """Remove a user from a project; raises NotFoundError."""
        with self._administering() as connection:
            mine = (membership.c[key] == value for key, value in _place(connection, name, where).items())
            if connection.execute(sa.delete(membership).where(*mine)).rowcount == 0:
                raise NotFoundError(f"{name!r} is not in the project {where!r}")
            audit_event(connection, "project left", f"user {name}", where)

    def add_token(self, user: str, name: str, digest: str, scope: Scope, expires: datetime | None) -> tuple[int, bool]:
        """Store the hash of a new API token; returns the token's number, and whether it is new.

        A hash that is stored already is not stored again. Raises NotFoundError if there is no such user, ConflictError
        if the hash belongs to another or an invalid token or the user has too many tokens.
        """
        with self._database.writing() as connection:
            who = require_own_tokens(connection, user)
            number = int(named(connection, account, user).id)
            if not who.administers and scope in _FOR_ADMINISTRATORS:
                raise NotAllowedError(f"only an administrator may make a token of the scope {scope}")
            if not who.administers and expires is None:
                raise NotAllowedError(
                    "only an administrator may make a token that never expires; give its lifetime in days"
                )
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
            added = connection.scalar(adding.returning(token.c.id))
            if added is None:  # the same request was sent twice at once
                return _same(connection.execute(alike).one(), number, name, scope), False
            audit_event(connection, "token added", f"token {added}", f"{user}, {name}, {scope}")
            return int(added), True

    def revoke(self, number: int) -> None:
        """Revoke an API token and the browser sessions that began with it; raises NotFoundError.

        NotFoundError is also raised for tokens of other users.
        """
        query = sa.select(account.c.name).join(token, token.c.account_id == account.c.id).where(token.c.id == number)
        with self._database.writing() as connection:
            whose = connection.scalar(query)
            who = rights(connection)
            if whose is None or not (who.administers or who.name == whose):
                raise NotFoundError(f"no token {number}")
            require_own_tokens(connection, whose)
            ending = sa.update(token).where(token.c.id == number, token.c.revoked.is_(None))
            if connection.execute(ending.values(revoked=datetime.now(UTC))).rowcount:
                audit_event(connection, "token revoked", f"token {number}")

    def set_quota(self, kind: QuotaKind, name: str, limits: Quota) -> None:
        """Replace the quota of a user or a project; a quota without limits removes it. Raises NotFoundError.

        The conductor applies it within seconds.
        """
        table, key = (account, "account_id") if kind == "user" else (project, "project_id")
        values = limits.model_dump()
        listed = ", ".join(f"{what} {most:g}" for what, most in values.items() if most is not None)
        with self._administering() as connection:
            number = named(connection, table, name).id
            if listed:
                upsert(connection, quota, {key: number}, values)
            else:
                connection.execute(sa.delete(quota).where(quota.c[key] == number))
            audit_event(connection, "quota set" if listed else "quota removed", f"{kind} {name}", listed)

    def _set(self, name: str, values: dict[str, Any], what: str, detail: str = "") -> None:
        with self._administering() as connection:
            number = named(connection, account, name).id
            connection.execute(sa.update(account).where(account.c.id == number).values(values))
            audit_event(connection, what, f"user {name}", detail)


def _add(connection: sa.Connection, table: sa.Table, what: str, **values: Any) -> None:
    try:
        with connection.begin_nested():
            connection.execute(sa.insert(table).values(**values, created=datetime.now(UTC)))
    except IntegrityError:
        raise ConflictError(f"{what} exists already; choose another name") from None


def _join(connection: sa.Connection, name: str, where: str, *, steers: bool) -> None:
    upsert(connection, membership, _place(connection, name, where), {"steers": steers})
    audit_event(connection, "project joined", f"user {name}", f"{where}, {'member' if steers else 'viewer'}")


def _same(known: sa.Row[Any], whose: int, name: str, scope: Scope) -> int:
    """The number of a stored token; raises ConflictError unless it is valid and equals the requested token."""
    if (known.account_id, known.name, known.scope) != (whose, name, scope):
        raise ConflictError(
            f"the idempotency key belongs to token {known.id}, whose user, name or scope differs; use a new key"
        )
    if not is_valid(known):
        raise ConflictError(
            f"the idempotency key belongs to token {known.id}, which was revoked or has expired; use a new key"
        )
    return int(known.id)


def _require_few(connection: sa.Connection, whose: int, user: str) -> None:
    opens = (token.c.revoked.is_(None), sa.or_(token.c.expires.is_(None), token.c.expires > datetime.now(UTC)))
    shown = token.c.browser.is_not(True)  # browsers have their own limit
    query = sa.select(sa.func.count()).select_from(token).where(token.c.account_id == whose, shown, *opens)
    if connection.execute(query).scalar_one() >= MOST_TOKENS:
        raise ConflictError(
            f"{user!r} has {MOST_TOKENS} valid tokens, which is the most a user may have; revoke one first"
        )


def _place(connection: sa.Connection, name: str, where: str) -> dict[str, int]:
    return {
        "account_id": named(connection, account, name).id,
        "project_id": named(connection, project, where).id,
    }


MOST_SHARES: Final = 20
"""Valid share links of a sweep."""


class Shares(Access):
    """Makes, lists and revokes the share links of sweeps, of which only the hash of the secret is stored.

    Methods raise NotFoundError unless the caller sees the sweep, NotAllowedError unless it may change the sweep.
    """

    def of(self, number: int) -> list[ShareView]:
        """The valid share links of a sweep, the oldest first."""
        query = sa.select(share).where(share.c.sweep_id == number, share.c.expires > datetime.now(UTC))
        with self._database.reading() as connection:
            require_steered(connection, number)
            return [_shared(row) for row in connection.execute(query.order_by(share.c.id))]

    def add(self, number: int, days: float, actor: str | None) -> NewShareView:
        """Make a share link that is valid for some days; raises ConflictError if the sweep has the most already."""
        secret, now = secrets.token_urlsafe(32), datetime.now(UTC)
        values = {
            "sweep_id": number, "hash": digest(secret), "actor": actor, "created": now,
            "expires": now + timedelta(days=days), "account_id": caller().user,
        }  # fmt: skip
        with self._database.writing() as connection:
            lock_changes(connection)  # not at the same time as its deletion
            require_steered(connection, number)
            connection.execute(sa.delete(share).where(share.c.sweep_id == number, share.c.expires <= now))
            count = sa.select(sa.func.count()).select_from(share).where(share.c.sweep_id == number)
            if connection.execute(count).scalar_one() >= MOST_SHARES:
                raise ConflictError(f"sweep {number} has {MOST_SHARES} share links, which is the most; revoke one")
            row = connection.execute(sa.insert(share).values(values).returning(share)).one()
            until = f"link {row.id}, until {row.expires:%Y-%m-%d %H:%M} UTC"
            audit_event(connection, "shared", f"sweep {number}", until, actor=actor)
        return NewShareView(**_shared(row).model_dump(), path=f"{SHARED_PATH}?link={secret}")

    def revoke(self, number: int, link: int, actor: str | None) -> ShareView:
        """Delete a share link of a sweep, which shows nothing from the next request on; raises NotFoundError."""
        with self._database.writing() as connection:
            require_steered(connection, number)
            mine = (share.c.sweep_id == number, share.c.id == link)
            row = connection.execute(sa.delete(share).where(*mine).returning(share)).one_or_none()
            if row is None:
                raise NotFoundError(f"sweep {number} has no share link {link}")
            audit_event(connection, "share revoked", f"sweep {number}", f"link {link}", actor=actor)
        return _shared(row)


def _shared(row: sa.Row[Any]) -> ShareView:
    return ShareView(id=row.id, sweep=row.sweep_id, actor=row.actor, created=row.created, expires=row.expires)


MOST_BROWSERS: Final = 50
"""Logged-in browsers of a user; a new login ends the oldest."""
HOW: Final = "OpenID Connect"


class LoginWriter(_Administration):
    """Writes logins through an OpenID provider. The server has verified the provider's token before."""

    def enter(self, person: Person, terms: LoginTerms) -> Caller:
        """Log a browser in as the user of an OpenID login; raises LoginRefusedError.

        Refused are disabled users, and people who are no user and cannot become one. Only the provider's subject
        identifies a user: a name or e-mail address proves nothing.
        """
        with self._database.writing() as connection:
            row = _known(connection, person) or _made(connection, person, terms.new_users)
            if row.disabled is not None:
                raise LoginRefusedError(f"the user {row.name} is disabled here", person.subject)
            if person.role is not None and row.role != person.role:
                connection.execute(sa.update(account).where(account.c.id == row.id).values(role=person.role))
                audit_event(connection, "role given", f"user {row.name}", person.role, actor=HOW)
            number = _let_in(connection, row.id, terms.seconds)
            who = by_token(connection, token.c.id == number)
            assert who is not None, "it was made just now"
            audit_event(connection, "login", HOW, f"subject {person.subject}", who=who)
            return who

    def leave(self, number: int) -> bool:
        """Revoke the session token of a browser; False if `number` is not a valid token of a browser."""
        mine = (token.c.id == number, token.c.browser.is_(True))
        with self._database.writing() as connection:
            who = by_token(connection, token.c.id == number)
            ending = sa.update(token).where(*mine, token.c.revoked.is_(None)).values(revoked=datetime.now(UTC))
            if not connection.execute(ending).rowcount:
                return False
            audit_event(connection, "logout", HOW, who=who)
            return True

    def link(self, name: str, issuer: str, subject: str) -> None:
        """Link a user with an OpenID subject; raises NotFoundError, and ConflictError if one of them is linked."""
        with self._administering() as connection:
            row = named(connection, account, name)
            if (row.issuer, row.subject) == (issuer, subject):
                return
            if row.subject is not None:
                raise ConflictError(
                    f"{name!r} is linked with the login {row.subject!r} of {row.issuer}; unlink it first"
                )
            linking = sa.update(account).where(account.c.id == row.id).values(issuer=issuer, subject=subject)
            try:
                with connection.begin_nested():
                    connection.execute(linking)
            except IntegrityError:
                raise ConflictError(f"the login {subject!r} of {issuer} is linked with another user") from None
            audit_event(connection, "login linked", f"user {name}", f"{subject} of {issuer}")

    def unlink(self, name: str) -> None:
        """Remove a user's link with an OpenID provider and end its browser sessions; raises NotFoundError."""
        with self._administering() as connection:
            row = named(connection, account, name)
            if row.subject is None:
                return
            connection.execute(sa.update(account).where(account.c.id == row.id).values(issuer=None, subject=None))
            connection.execute(sa.update(token).where(*_open(row.id)).values(revoked=datetime.now(UTC)))
            audit_event(connection, "login unlinked", f"user {name}", f"{row.subject} of {row.issuer}")


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
        message = f"there is a user {person.name} here already, who is not linked with this login"
        raise LoginRefusedError(message, person.subject) from None
    audit_event(
        connection, "user added", f"user {person.name}", f"{values['role']}, subject {person.subject}", actor=HOW
    )
    return named(connection, account, person.name)


def _let_in(connection: sa.Connection, whose: int, seconds: float) -> int:
    now = datetime.now(UTC)
    over = sa.or_(token.c.revoked.is_not(None), token.c.expires <= now)
    # The audit log keeps what became of these tokens.
    connection.execute(sa.delete(token).where(token.c.account_id == whose, token.c.browser.is_(True), over))
    kept = sa.select(token.c.id).where(*_open(whose)).order_by(token.c.id.desc()).limit(MOST_BROWSERS - 1)
    rest = (*_open(whose), token.c.id.not_in(connection.scalars(kept).all()))
    connection.execute(sa.update(token).where(*rest).values(revoked=now))
    values = {
        "account_id": whose, "name": "browser", "hash": digest(new_token()), "scope": Scope.ADMIN, "created": now,
        "expires": now + timedelta(seconds=seconds), "browser": True,
    }  # fmt: skip
    return int(connection.execute(sa.insert(token).values(values).returning(token.c.id)).scalar_one())


def _open(whose: int) -> tuple[sa.ColumnElement[bool], ...]:
    return token.c.account_id == whose, token.c.browser.is_(True), token.c.revoked.is_(None)
