"""Whether a caller may change a sweep, submit one, or manage users and tokens: asked within the transaction that does
it, by the rights of then.

A request may be read for minutes; what was taken from its sender meanwhile is taken.
"""

import sqlalchemy as sa

from orchestrator.record.reads.accounts import again
from orchestrator.record.schema import MAIN, project, sweep
from orchestrator.views.accounts import Caller, Role, Scope, caller
from orchestrator.views.errors import ConflictError, NotAllowedError, NotFoundError


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
