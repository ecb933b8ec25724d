"""Who may do what: reads of users, projects, tokens and the audit log."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.host.logs import ids_of_now
from orchestrator.record.columns import storable
from orchestrator.record.database import Access, next_cursor, page_after
from orchestrator.record.schema import MAIN, account, audit, membership, project, share, sweep, token
from orchestrator.views.accounts import (
    OWNER,
    VISITOR,
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
    """Reads the rights of callers. Nothing is cached: a token is checked at every request."""

    def by_hash(self, digest: str) -> Caller | None:
        """The user who owns the API token with this SHA-256 hash; `None` unless the token is valid now."""
        with self._database.reading() as connection:
            return by_token(connection, token.c.hash == digest)

    def by_token(self, number: int) -> Caller | None:
        """The user who owns the API token with this number; `None` unless the token is valid now."""
        with self._database.reading() as connection:
            return by_token(connection, token.c.id == number)

    def by_name(self, name: str) -> Caller | None:
        """The rights of a user who was authenticated elsewhere, such as by a proxy."""
        with self._database.reading() as connection:
            return _of_account(connection, account.c.name == name, None, Scope.ADMIN)

    def by_links(self, digests: Collection[str]) -> Caller | None:
        """The visitor whom the share links with these SHA-256 hashes let in; `None` unless one of them is valid now."""
        with self._database.reading() as connection:
            return by_links(connection, share.c.hash.in_(digests))

    def again(self, who: Caller) -> Caller | None:
        """Reads the rights of a caller again; `None` if it has no rights any more."""
        with self._database.reading() as connection:
            return again(connection, who)

    def any(self) -> bool:
        """Whether the database has any user account."""
        return self._exists(sa.select(account.c.id))

    def allowed(self, wanted: int) -> Allowed:
        """What the caller may do with a sweep, for the buttons of its page; raises NotFoundError."""
        query = sa.select(sweep.c.project_id, sweep.c.owner_id, project.c.name)
        row = self._row(query.join(project, project.c.id == sweep.c.project_id).where(sweep.c.id == wanted))
        if row is None:
            raise NotFoundError(f"no sweep {wanted}")
        who = caller()
        if who.is_visitor:
            return Allowed(steer=False, delete=False, why="this is a read-only view by a share link")
        if not who.steers:
            read = who.scope is Scope.READ
            why = "your token may only read" if read else "viewers may not change anything"
            return Allowed(steer=False, delete=False, why=why)
        if not (who.steered is None or row.project_id in who.steered):
            why = f"you are not a member of its project {row.name}"
            return Allowed(steer=False, delete=False, why=why)
        if who.role is not Role.ADMIN and row.owner_id != who.user:
            return Allowed(delete=False, why="its owner and administrators may delete it")
        return Allowed()

    def reusing(self, name: str | None) -> int:
        """The project whose finished trainings a spec of the caller would reuse; 0 for open projects only.

        `name`: a project, or `None` for the caller's default project. Raises NotFoundError unless it sees the project.
        """
        who = caller()
        if name is None:
            if who.steered is None or MAIN in who.steered:
                return MAIN
            return min(who.steered) if len(who.steered) == 1 else 0
        with self._database.reading() as connection:
            return int(named(connection, project, name).id)

    def names_of(self, projects: frozenset[int] | None) -> list[str]:
        """The names of the projects with these numbers; `None` means all projects."""
        query = sa.select(project.c.name).order_by(project.c.name)
        if projects is not None:
            query = query.where(project.c.id.in_(projects))
        return [row.name for row in self._rows(query)]


def is_valid(row: sa.Row[Any]) -> bool:
    """Whether an API token was neither revoked nor has expired."""
    return row.revoked is None and (row.expires is None or row.expires > datetime.now(UTC))


def by_token(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Caller | None:
    """The user who owns an API token; `None` unless the token is valid and the user is not disabled."""
    row = connection.execute(sa.select(token).where(which)).one_or_none()
    if row is None or not is_valid(row):
        return None
    return _of_account(connection, account.c.id == row.account_id, row.id, Scope(row.scope))


def again(connection: sa.Connection, who: Caller) -> Caller | None:
    """Reads the rights of a caller again within a transaction; `None` if it has no rights any more."""
    if who.is_owner:
        return who
    if who.user is None:
        return by_links(connection, share.c.id.in_(who.links))
    if who.token is None:
        return _of_account(connection, account.c.id == who.user, None, who.scope)
    return by_token(connection, token.c.id == who.token)


def _of_account(
    connection: sa.Connection, which: sa.ColumnElement[bool], by: int | None, scope: Scope
) -> Caller | None:
    row = connection.execute(sa.select(account).where(which)).one_or_none()
    if row is None or row.disabled is not None:
        return None
    number = row.id
    most = _RANKS.get(scope, Role.MEMBER)  # MLflow's own scope writes what runs have logged
    role = min(Role(row.role), most, key=_ORDER.index)
    if role is Role.ADMIN:
        return Caller(number, row.name, by, role, scope)
    if row.role == Role.ADMIN:  # with a token of a lower scope: it sees everything
        steered = None if role is Role.MEMBER else frozenset[int]()
        return Caller(number, row.name, by, role, scope, None, steered, everywhere=role is Role.MEMBER)
    places = connection.execute(sa.select(membership).where(membership.c.account_id == number)).all()
    projects = connection.execute(sa.select(project.c.id, project.c.open)).all()
    seen = frozenset(row.id for row in projects if row.open) | {place.project_id for place in places}
    steers = role is not Role.VIEWER
    steered = frozenset(place.project_id for place in places if place.steers and steers)
    return Caller(number, row.name, by, role, scope, seen, steered, everywhere=steered >= {row.id for row in projects})


def by_links(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Caller | None:
    """The visitor whom some share links let in; `None` unless one of them is valid now.

    A link is valid until it expires or its maker may no longer change the sweep.
    """
    query = sa.select(share.c.id, share.c.sweep_id, share.c.account_id, sweep.c.project_id).join(sweep)
    rows = connection.execute(query.where(which, share.c.expires > datetime.now(UTC))).all()
    valid = [row for row in rows if _steers(connection, row.account_id, row.project_id)]
    if not valid:
        return None
    return replace(VISITOR, links=frozenset(row.id for row in valid), shared=frozenset(row.sweep_id for row in valid))


def _steers(connection: sa.Connection, number: int | None, where: int) -> bool:
    """Whether a user, or the owner of the service for `None`, may change the sweeps of a project."""
    who = OWNER if number is None else _of_account(connection, account.c.id == number, None, Scope.ADMIN)
    return who is not None and (who.steered is None or where in who.steered)


def named(connection: sa.Connection, table: sa.Table, name: str) -> sa.Row[Any]:
    """The row of a user (`account`) or a project with this name; raises NotFoundError."""
    row = connection.execute(sa.select(table).where(table.c.name == name)).one_or_none()
    if row is None:
        raise NotFoundError(f"no {'user' if table is account else 'project'} named {name!r}")
    return row


_CHUNK = 1_000


class AuditLog(Access):
    """Reads the audit log, and adds entries about logins, which change nothing else in the database."""

    def after(self, number: int) -> Iterator[AuditEntry]:
        """The audit entries after the entry `number`, oldest first; reads a thousand in each transaction."""
        while True:
            columns = sa.select(audit, audit.c.account_id.label("user"), audit.c.token_id.label("token"))
            rows = self._rows(columns.where(audit.c.id > number).order_by(audit.c.id).limit(_CHUNK))
            yield from (AuditEntry.model_validate(row, from_attributes=True) for row in rows)
            if len(rows) < _CHUNK:
                return
            number = rows[-1].id

    def entered(self, who: Caller, how: str) -> None:
        """Record in the audit log that a browser was logged in; `how` names the kind of login."""
        with self._database.writing() as connection:
            audit_event(connection, "login", how, who=who)

    def refused(self, how: str, why: str) -> None:
        """Record in the audit log that a login was refused; `why` includes the claimed identity."""
        with self._database.writing() as connection:
            audit_event(connection, "login refused", how, why, actor="somebody")


class DirectoryReader(Access):
    """Lists users, projects and tokens, oldest first, without secrets: only hashes of tokens are stored."""

    def users(self, cursor: str | None, limit: int, name: str | None = None) -> Page[UserView]:
        """A page of users with their projects; `name` limits it to the user of this name."""
        query = page_after(sa.select(account), account.c.id, cursor, limit)
        if name is not None:
            query = query.where(account.c.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            places = _places(connection, [row.id for row in rows])
        items = [
            UserView(
                name=row.name, role=Role(row.role), created=row.created, disabled=row.disabled, projects=places[row.id],
                login=None if row.subject is None else LoginView(issuer=row.issuer, subject=row.subject),
            )
            for row in rows[:limit]
        ]  # fmt: skip
        return Page(items=items, next_cursor=next_cursor(rows, limit))

    def user(self, name: str) -> UserView:
        """The user of a name with its projects; raises NotFoundError."""
        for view in self.users(None, 1, name).items:
            return view
        raise NotFoundError(f"no user named {name!r}")

    def projects(self, cursor: str | None, limit: int, name: str | None = None) -> Page[ProjectView]:
        """A page of projects with their members; `name` limits it to the project of this name."""
        query = page_after(sa.select(project), project.c.id, cursor, limit)
        if name is not None:
            query = query.where(project.c.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            joined = sa.select(membership.c.project_id, account.c.name).join(account)
            joined = joined.where(membership.c.project_id.in_([row.id for row in rows])).order_by(account.c.name)
            members: dict[int, list[str]] = defaultdict(list)
            for row in connection.execute(joined):
                members[row.project_id].append(row.name)
        items = [ProjectView(**row._mapping, members=members[row.id]) for row in rows[:limit]]
        return Page(items=items, next_cursor=next_cursor(rows, limit))

    def project(self, name: str) -> ProjectView:
        """The project of a name with its members; raises NotFoundError."""
        for view in self.projects(None, 1, name).items:
            return view
        raise NotFoundError(f"no project named {name!r}")

    def tokens(self, cursor: str | None, limit: int, user: str | None = None) -> Page[TokenView]:
        """A page of API tokens, of all users or of one."""
        query = page_after(_TOKENS, token.c.id, cursor, limit)
        if user is not None:
            query = query.where(account.c.name == user)
        rows = self._rows(query)
        items = [TokenView.model_validate(row, from_attributes=True) for row in rows[:limit]]
        return Page(items=items, next_cursor=next_cursor(rows, limit))

    def token(self, number: int) -> TokenView:
        """The API token with a number, without its secret; raises NotFoundError."""
        row = self._row(_TOKENS.where(token.c.id == number))
        if row is None:
            raise NotFoundError(f"no token {number}")
        return TokenView.model_validate(row, from_attributes=True)


_TOKENS: Final = sa.select(
    *(token.c[name] for name in ("id", "name", "scope", "created", "expires", "revoked")),
    account.c.name.label("user"), token.c.browser.is_(True).label("browser"),
).join(account)  # fmt: skip


def _places(connection: sa.Connection, users: Sequence[int]) -> dict[int, list[MembershipView]]:
    query = sa.select(membership.c.account_id, membership.c.steers, project.c.name).join(project)
    places: dict[int, list[MembershipView]] = defaultdict(list)
    for row in connection.execute(query.where(membership.c.account_id.in_(users)).order_by(project.c.name)):
        role = Role.MEMBER if row.steers else Role.VIEWER
        places[row.account_id].append(MembershipView(project=row.name, role=role))
    return places


def require_steered(connection: sa.Connection, wanted: int, *, owned: bool = False) -> int:
    """Check that the caller may change a sweep, and return the sweep's project.

    `owned`: only the sweep's owner and administrators may. Raises NotFoundError unless the caller sees the sweep,
    NotAllowedError unless it may change it.
    """
    row = connection.execute(sa.select(sweep.c.project_id, sweep.c.owner_id).where(sweep.c.id == wanted)).one_or_none()
    who = rights(connection)
    if row is None or not (who.seen is None or row.project_id in who.seen):
        raise NotFoundError(f"no sweep {wanted}")
    if not (who.steered is None or row.project_id in who.steered):
        raise NotAllowedError(f"you may see sweep {wanted} but not change it: you are not a member of its project")
    if owned and who.role is not Role.ADMIN and row.owner_id != who.user:
        raise NotAllowedError(
            f"sweep {wanted} belongs to another user; only its owner and administrators may delete it"
        )
    return int(row.project_id)


def chosen_project(connection: sa.Connection, name: str | None) -> int:
    """The project that a caller submits to: the named project, `main`, or the only project that it may submit to."""
    who = rights(connection)
    if name is not None:
        number = connection.scalar(sa.select(project.c.id).where(project.c.name == name))
        if number is None or not (who.seen is None or number in who.seen):
            raise NotFoundError(f"no project named {name!r}")
        if not (who.steered is None or number in who.steered):
            raise NotAllowedError(f"you may see the project {name!r} but not submit to it: you are only a viewer")
        return int(number)
    if who.steered is None or MAIN in who.steered:
        return MAIN
    if not who.steered:
        raise NotAllowedError("you are not a member of any project, so you cannot submit a sweep")
    if len(who.steered) > 1:
        names = connection.execute(sa.select(project.c.name).where(project.c.id.in_(who.steered)))
        raise ConflictError(
            f"you may submit to several projects; name one of them: {', '.join(sorted(names.scalars()))}"
        )
    return min(who.steered)


def require_administrator(connection: sa.Connection) -> None:
    """Raise NotAllowedError unless the caller may manage users and projects."""
    if not rights(connection).administers:
        raise NotAllowedError("only administrators with a token of the scope `admin` manage users and projects")


def require_own_tokens(connection: sa.Connection, whose: str) -> Caller:
    """Raise NotAllowedError unless the caller may make and revoke the user's tokens; returns the caller.

    Users manage their own tokens, administrators all. A token of a lower scope makes no token of a higher scope.
    """
    who = rights(connection)
    if who.administers:
        return who
    if who.name != whose:
        raise NotAllowedError("only administrators with a token of the scope `admin` manage tokens of other users")
    if who.scope not in (Scope.WRITE, Scope.ADMIN):
        raise NotAllowedError(f"a token of the scope {who.scope} can neither make nor revoke tokens")
    return who


def rights(connection: sa.Connection) -> Caller:
    """The caller of the present transaction with its rights; raises NotAllowedError if it has none any more."""
    who = again(connection, caller())
    if who is None:
        raise NotAllowedError("your token is no longer valid: it was revoked or has expired, or your user is disabled")
    return who


MOST_DETAIL = 2_000
"""Characters of an entry's detail."""


def audit_event(
    connection: sa.Connection, what: str, target: str, detail: str = "", *, actor: str | None = None,
    who: Caller | None = None,
) -> None:  # fmt: skip
    """Add an entry to the audit log, with the caller, its address and the request.

    `actor` names a caller without a user.
    """
    asks = who or caller()
    connection.execute(
        sa.insert(audit).values(
            at=datetime.now(UTC), who=asks.name or actor or "owner", account_id=asks.user, token_id=asks.token,
            what=what, target=target, detail=storable(detail)[:MOST_DETAIL], address=address(),
            request=str(ids_of_now().get("request", "")),
        )
    )  # fmt: skip
