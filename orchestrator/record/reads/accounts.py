"""Who may do what, as it is now: by a token's hash, a token or a user."""

from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.record.database import Access
from orchestrator.record.schema import MAIN, account, membership, project, sweep, token
from orchestrator.views.accounts import Allowed, Caller, Role, Scope, caller
from orchestrator.views.errors import NotFoundError

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
