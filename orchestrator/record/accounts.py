"""Who may do what: reads of users, projects, tokens and the audit log."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from orchestrator.host.logs import ids_of_now
from orchestrator.record.columns import storable
from orchestrator.record.database import Access, decode, encode
from orchestrator.record.schema import MAIN, account, audit, membership, project, sweep, token
from orchestrator.views.accounts import (
    Allowed,
    AuditEntry,
    Caller,
    LoginView,
    MembershipView,
    ProjectView,
    Role,
    Scope,
    TokenView,
    UserView,
    address,
    caller,
)
from orchestrator.views.errors import ConflictError, NotAllowedError, NotFoundError
from orchestrator.views.pages import Page

_RANKS = {Scope.READ: Role.VIEWER, Scope.WRITE: Role.MEMBER, Scope.ADMIN: Role.ADMIN}
_ORDER = list(Role)


class AccountReader(Access):
    """Reads who may do what. What it finds holds at that moment: a token is asked about at every request."""

    def by_hash(self, digest: str) -> Caller | None:
        """Who has the token with this hash, if that opens anything now."""
        with self._database.reading() as connection:
            number = connection.execute(sa.select(token.c.id).where(token.c.hash == digest)).scalar_one_or_none()
            return None if number is None else by_token(connection, number)

    def by_token(self, number: int) -> Caller | None:
        """Whose a token is, if it opens anything now."""
        with self._database.reading() as connection:
            return by_token(connection, number)

    def by_name(self, name: str) -> Caller | None:
        """A user, whose login somebody else has seen."""
        with self._database.reading() as connection:
            number = connection.execute(sa.select(account.c.id).where(account.c.name == name)).scalar_one_or_none()
            return None if number is None else _of_account(connection, number, None, Scope.ADMIN)

    def again(self, who: Caller) -> Caller | None:
        """The same caller as its rights are now; none: it has none left."""
        with self._database.reading() as connection:
            return again(connection, who)

    def any(self) -> bool:
        """Whether there is any user."""
        with self._database.reading() as connection:
            return connection.execute(sa.select(account.c.id).limit(1)).first() is not None

    def allowed(self, wanted: int) -> Allowed:
        """What the caller may do with a sweep, for pages to offer no more; NotFoundError unless it sees the sweep."""
        query = sa.select(sweep.c.project_id, sweep.c.owner_id, project.c.name)
        query = query.join(project, project.c.id == sweep.c.project_id).where(sweep.c.id == wanted)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFoundError(f"no sweep {wanted}")
        who = caller()
        if not who.steers:
            read = who.scope is Scope.READ
            why = "you are here by a token that may only read" if read else "a viewer looks, and changes nothing"
            return Allowed(steer=False, delete=False, why=why)
        if not (who.steered is None or row.project_id in who.steered):
            return Allowed(
                steer=False, delete=False, why=f"you are no member of the project {row.name}, whose sweep it is"
            )
        if who.role is not Role.ADMIN and row.owner_id != who.user:
            return Allowed(delete=False, why="its owner and administrators may delete it")
        return Allowed()

    def reusing(self, name: str | None) -> int:
        """The project whose trainings a spec of the caller's would reuse; 0: of none but the open ones.

        By name, else the caller's usual one, as far as there is one. NotFoundError where it sees none of this name.
        """
        who = caller()
        if name is None:
            if who.steered is None or MAIN in who.steered:
                return MAIN
            return min(who.steered) if len(who.steered) == 1 else 0
        with self._database.reading() as connection:
            number = connection.execute(sa.select(project.c.id).where(project.c.name == name)).scalar_one_or_none()
        if number is None:
            raise NotFoundError(f"no project named {name!r}")
        return int(number)

    def names_of(self, projects: frozenset[int] | None) -> list[str]:
        """The names of projects; of all without a choice."""
        query = sa.select(project.c.name).order_by(project.c.name)
        if projects is not None:
            query = query.where(project.c.id.in_(projects))
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())


def by_token(connection: sa.Connection, number: int) -> Caller | None:
    """Whose a token is; none where it was revoked, has run out, or its user is disabled."""
    row = connection.execute(sa.select(token).where(token.c.id == number)).one_or_none()
    if row is None or row.revoked is not None or (row.expires is not None and row.expires <= datetime.now(UTC)):
        return None
    return _of_account(connection, row.account_id, row.id, Scope(row.scope))


def again(connection: sa.Connection, who: Caller) -> Caller | None:
    """The same caller as its rights are in this transaction."""
    if who.user is None:
        return who
    if who.token is None:
        return _of_account(connection, who.user, None, who.scope)
    return by_token(connection, who.token)


def _of_account(connection: sa.Connection, number: int, by: int | None, scope: Scope) -> Caller | None:
    row = connection.execute(sa.select(account).where(account.c.id == number)).one_or_none()
    if row is None or row.disabled is not None:
        return None
    most = _RANKS.get(scope, Role.MEMBER)  # MLflow's own writes what runs have logged
    role = min(Role(row.role), most, key=_ORDER.index)
    if role is Role.ADMIN:
        return Caller(number, row.name, by, role, scope)
    if row.role == Role.ADMIN:  # by a token for less: it sees all, and steers all if that is a member's
        steered = None if role is Role.MEMBER else frozenset[int]()
        return Caller(number, row.name, by, role, scope, None, steered, everywhere=role is Role.MEMBER)
    places = connection.execute(sa.select(membership).where(membership.c.account_id == number)).all()
    projects = connection.execute(sa.select(project.c.id, project.c.open)).all()
    seen = frozenset(one.id for one in projects if one.open) | {place.project_id for place in places}
    steers = role is not Role.VIEWER
    steered = frozenset(place.project_id for place in places if place.steers and steers)
    return Caller(number, row.name, by, role, scope, seen, steered, everywhere=steered >= {one.id for one in projects})


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


class DirectoryReader(Access):
    """Reads who there is, the oldest first. What opens is kept nowhere, and so is in no list."""

    def users(self, cursor: str | None, limit: int, name: str | None = None) -> Page[UserView]:
        """Users with their projects; with a name, that one alone."""
        query = _page(sa.select(account), account, cursor, limit)
        if name is not None:
            query = query.where(account.c.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            places = _places(connection, [row.id for row in rows])
        items = [
            UserView(
                name=row.name,
                role=Role(row.role),
                created=row.created,
                disabled=row.disabled,
                projects=places[row.id],
                login=_login(row),
            )
            for row in rows[:limit]
        ]
        return Page[UserView](items=items, next_cursor=_next(rows, limit))

    def user(self, name: str) -> UserView:
        """One user; NotFoundError."""
        for one in self.users(None, 1, name).items:
            return one
        raise NotFoundError(f"no user named {name!r}")

    def projects(self, cursor: str | None, limit: int, name: str | None = None) -> Page[ProjectView]:
        """Projects with their members; with a name, that one alone."""
        query = _page(sa.select(project), project, cursor, limit)
        if name is not None:
            query = query.where(project.c.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            joined = sa.select(membership.c.project_id, account.c.name).join(account)
            joined = joined.where(membership.c.project_id.in_([row.id for row in rows])).order_by(account.c.name)
            members: dict[int, list[str]] = defaultdict(list)
            for row in connection.execute(joined):
                members[row.project_id].append(row.name)
        items = [
            ProjectView(name=row.name, open=row.open, created=row.created, members=members[row.id])
            for row in rows[:limit]
        ]
        return Page[ProjectView](items=items, next_cursor=_next(rows, limit))

    def project(self, name: str) -> ProjectView:
        """One project; NotFoundError."""
        for one in self.projects(None, 1, name).items:
            return one
        raise NotFoundError(f"no project named {name!r}")

    def tokens(self, cursor: str | None, limit: int, user: str | None = None) -> Page[TokenView]:
        """Tokens, or those of a user, without what opens."""
        query = _page(_tokens(), token, cursor, limit)
        if user is not None:
            query = query.where(account.c.name == user)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return Page[TokenView](items=[_token(row) for row in rows[:limit]], next_cursor=_next(rows, limit))

    def token(self, number: int) -> TokenView:
        """One token; NotFoundError."""
        with self._database.reading() as connection:
            row = connection.execute(_tokens().where(token.c.id == number)).one_or_none()
        if row is None:
            raise NotFoundError(f"no token {number}")
        return _token(row)


def _tokens() -> sa.Select[Any]:
    return sa.select(token, account.c.name.label("user")).join(account)


def _token(row: sa.Row[Any]) -> TokenView:
    return TokenView(
        id=row.id, user=row.user, name=row.name, scope=Scope(row.scope), created=row.created, expires=row.expires,
        revoked=row.revoked, browser=bool(row.browser),
    )  # fmt: skip


def _login(row: sa.Row[Any]) -> LoginView | None:
    return None if row.subject is None else LoginView(issuer=row.issuer, subject=row.subject)


def _places(connection: sa.Connection, users: Sequence[int]) -> dict[int, list[MembershipView]]:
    query = sa.select(membership.c.account_id, membership.c.steers, project.c.name).join(project)
    places: dict[int, list[MembershipView]] = defaultdict(list)
    for row in connection.execute(query.where(membership.c.account_id.in_(users)).order_by(project.c.name)):
        role = Role.MEMBER if row.steers else Role.VIEWER
        places[row.account_id].append(MembershipView(project=row.name, role=role))
    return places


def _page(query: sa.Select[Any], table: sa.Table, cursor: str | None, limit: int) -> sa.Select[Any]:
    """One row more than is shown tells whether there is another page."""
    query = query.order_by(table.c.id).limit(limit + 1)
    return query if cursor is None else query.where(table.c.id > decode(cursor))


def _next(rows: Sequence[sa.Row[Any]], limit: int) -> str | None:
    return encode(rows[limit - 1].id) if len(rows) > limit else None


def require_steered(connection: sa.Connection, wanted: int, *, owned: bool = False) -> int:
    """Raise NotFoundError unless the caller sees the sweep, NotAllowedError unless it may steer it; gives its project.

    `owned`: only who submitted it may, and administrators.
    """
    row = connection.execute(sa.select(sweep.c.project_id, sweep.c.owner_id).where(sweep.c.id == wanted)).one_or_none()
    who = rights(connection)
    if row is None or not (who.seen is None or row.project_id in who.seen):
        raise NotFoundError(f"no sweep {wanted}")
    if not (who.steered is None or row.project_id in who.steered):
        raise NotAllowedError(f"you may look at sweep {wanted}, not steer it: you are no member of its project")
    if owned and who.role is not Role.ADMIN and row.owner_id != who.user:
        raise NotAllowedError(f"sweep {wanted} is somebody else's; its owner and administrators may delete it")
    return int(row.project_id)


def chosen_project(connection: sa.Connection, name: str | None) -> int:
    """The project that a caller submits to: the one it names, `main`, or the only one that it may submit to."""
    who = rights(connection)
    if name is not None:
        number = connection.execute(sa.select(project.c.id).where(project.c.name == name)).scalar_one_or_none()
        if number is None or not (who.seen is None or number in who.seen):
            raise NotFoundError(f"no project named {name!r}")
        if not (who.steered is None or number in who.steered):
            raise NotAllowedError(f"you may look at the project {name!r}, not submit to it")
        return int(number)
    if who.steered is None or MAIN in who.steered:
        return MAIN
    if not who.steered:
        raise NotAllowedError("you are a member of no project to which you may submit")
    if len(who.steered) > 1:
        names = connection.execute(sa.select(project.c.name).where(project.c.id.in_(who.steered)))
        raise ConflictError(f"say to which project: {', '.join(sorted(names.scalars()))}")
    return min(who.steered)


def require_administrator(connection: sa.Connection) -> None:
    """Raise NotAllowedError unless the caller may say who there is, and who is in which project."""
    if not rights(connection).administers:
        raise NotAllowedError("users and projects are for administrators, by a token of the scope admin")


def require_own_tokens(connection: sa.Connection, whose: str) -> Caller:
    """Raise NotAllowedError unless the caller may make and end tokens of a user: its own, or an administrator anyone's.

    A token that opens less makes none that opens more.
    """
    who = rights(connection)
    if who.administers:
        return who
    if who.name != whose:
        raise NotAllowedError("tokens of others are for administrators, by a token of the scope admin")
    if who.scope not in (Scope.WRITE, Scope.ADMIN):
        raise NotAllowedError(f"a token of the scope {who.scope} makes and ends no tokens")
    return who


def rights(connection: sa.Connection) -> Caller:
    """The caller as its rights are now; NotAllowedError where it has none left."""
    who = again(connection, caller())
    if who is None:
        raise NotAllowedError("your token opens nothing any more")
    return who


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
