"""What the owner of a home does to its users, on its machine: in the database, and by no route of the API."""

import getpass
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.host.private import own_folder
from orchestrator.host.user_tokens import digest, new_token
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.accounts import ACCOUNT_NAME, AuditEntry, ProjectView, TokenView, UserView
from orchestrator.views.callers import Caller, Role, Scope, calling
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.quotas import Quota, QuotaKind, QuotaUse


class Owner:
    """Writes users, projects and tokens; what changes holds from the next request on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def users(self) -> list[UserView]:
        """All users."""
        return self._store.accounts.users()

    def projects(self) -> list[ProjectView]:
        """All projects."""
        return self._store.accounts.projects()

    def tokens(self, user: str | None = None) -> list[TokenView]:
        """All tokens, or a user's; never what opens."""
        return self._store.accounts.tokens(user)

    def add_user(self, name: str, role: Role, project: str | None) -> None:
        """Make a user, in a project; ConflictError, and NotFoundError of the project."""
        if project is not None:
            self._require_project(project)
        self._store.owner.add_user(_named(name, "user"), role)
        if project is not None:
            self.join(name, project, role)

    def join(self, name: str, project: str, role: Role) -> None:
        """Have a user be in a project: a viewer looks, anybody else steers. NotFoundError."""
        self._store.owner.join(name, project, steers=role is not Role.VIEWER)

    def leave(self, name: str, project: str) -> None:
        """Have a user be in a project no more; NotFoundError."""
        self._store.owner.leave(name, project)

    def set_role(self, name: str, role: Role) -> None:
        """Give a user another role; NotFoundError."""
        self._store.owner.set_role(name, role)

    def disable(self, name: str, *, disabled: bool) -> None:
        """Have nothing of a user's open anything, or all of it again; NotFoundError."""
        self._store.owner.disable(name, disabled=disabled)

    def add_project(self, name: str, *, everyone: bool) -> None:
        """Make a project, which its members see, or everybody; ConflictError."""
        self._store.owner.add_project(_named(name, "project"), everyone=everyone)

    def open_project(self, name: str, *, everyone: bool) -> None:
        """Have a project be seen by every user, or by its members alone; NotFoundError."""
        self._store.owner.open_project(name, everyone=everyone)

    def add_token(self, user: str, name: str, scope: Scope, days: float | None) -> tuple[int, str]:
        """A new token of a user: its number, and what opens, which is kept nowhere. NotFoundError."""
        text = new_token()
        until = None if days is None else datetime.now(UTC) + timedelta(days=days)
        return self._store.owner.add_token(user, _named(name, "token"), digest(text), scope, until), text

    def revoke(self, number: int) -> None:
        """Have a token, and the sessions that began with it, open nothing from now on; NotFoundError."""
        self._store.owner.revoke(number)

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Give a user or a project a quota in place of what it had; one that limits nothing takes it away."""
        self._store.owner_quotas.put(kind, name, quota)

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """What all users or all projects may have, and have used."""
        return [one for one in self._store.quotas.uses() if one.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number."""
        return self._store.audit.after(after)

    def _require_project(self, name: str) -> None:
        if name not in {one.name for one in self.projects()}:
            raise NotFoundError(f"no project named {name!r}; `metricsweep projects add {name}` makes it")


@contextmanager
def owning(settings: Settings) -> Iterator[Owner]:
    """The owner's work on a home that has been served; raises NotFoundError where there is no database."""
    own_folder(settings.resolved_home)
    file = settings.resolved_home / "metricsweep.db"
    if not settings.database_url and not Path(file).exists():
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    store = Store.open(settings.database)
    try:
        with calling(Caller(name=f"{_account()} on this machine"), socket.gethostname()):
            yield Owner(store)
    finally:
        store.close()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.getuid())


def _named(name: str, kind: str) -> str:
    if not re.fullmatch(ACCOUNT_NAME, name):
        said = "1 to 64 of a-z, 0-9 and ._@-, the first a letter or a digit"
        raise ConflictError(f"a {kind}'s name is {said}, not {name[:80]!r}")
    return name
