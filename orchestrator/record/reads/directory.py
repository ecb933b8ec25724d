"""Lists of users, projects and tokens, as far as the caller sees them: administrators all, others what is their own."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.reads.cursors import decode, encode
from orchestrator.record.schema import account, membership, project, token
from orchestrator.views.accounts import LoginView, MembershipView, ProjectView, Role, Scope, TokenView, UserView
from orchestrator.views.errors import NotFoundError
from orchestrator.views.pages import Page


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
