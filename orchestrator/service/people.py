"""Users and projects, as those manage them who may: administrators, and who holds a token of the server."""

from collections.abc import Iterator

from orchestrator.record.store import Store
from orchestrator.service.logins import Logins
from orchestrator.service.tokens import Tokens, named
from orchestrator.views.accounts import AuditEntry, ProjectView, UserView
from orchestrator.views.callers import Role
from orchestrator.views.pages import Page, each
from orchestrator.views.quotas import Quota, QuotaKind, QuotaUse


class People:
    """Writes users and projects; what changes holds from the next request on. NotAllowedError of who may not."""

    def __init__(self, store: Store, issuer: str = "") -> None:
        """`issuer`: the provider that is meant where none is named."""
        self._store = store
        self.tokens, self.logins = Tokens(store), Logins(store, issuer)

    def users(self) -> Iterator[UserView]:
        """All users, the oldest first."""
        return each(self.users_page)

    def users_page(self, cursor: str | None = None, limit: int = 200) -> Page[UserView]:
        """Some of them."""
        return self._store.directory.users(cursor, limit)

    def user(self, name: str) -> UserView:
        """One user; NotFoundError."""
        return self._store.directory.user(name)

    def projects(self) -> Iterator[ProjectView]:
        """All projects, the oldest first."""
        return each(self.projects_page)

    def projects_page(self, cursor: str | None = None, limit: int = 200) -> Page[ProjectView]:
        """Some of them."""
        return self._store.directory.projects(cursor, limit)

    def project(self, name: str) -> ProjectView:
        """One project; NotFoundError."""
        return self._store.directory.project(name)

    def add_user(self, name: str, role: Role, project: str | None) -> UserView:
        """Make a user, in a project or none; ConflictError, and NotFoundError of the project."""
        self._store.owner.add_user(named(name, "user"), role, project)
        return self.user(name)

    def join(self, name: str, project: str, role: Role) -> UserView:
        """Have a user be in a project: a viewer looks, anybody else steers. NotFoundError."""
        self._store.owner.join(name, project, steers=role is not Role.VIEWER)
        return self.user(name)

    def leave(self, name: str, project: str) -> UserView:
        """Have a user be in a project no more; NotFoundError."""
        self._store.owner.leave(name, project)
        return self.user(name)

    def set_role(self, name: str, role: Role) -> UserView:
        """Give a user another role; NotFoundError."""
        self._store.owner.set_role(name, role)
        return self.user(name)

    def disable(self, name: str, *, disabled: bool) -> UserView:
        """Have nothing of a user's open anything, or all of it again; NotFoundError."""
        self._store.owner.disable(name, disabled=disabled)
        return self.user(name)

    def add_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Make a project, which its members see, or everybody; ConflictError."""
        self._store.owner.add_project(named(name, "project"), everyone=everyone)
        return self.project(name)

    def open_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Have a project be seen by every user, or by its members alone; NotFoundError."""
        self._store.owner.open_project(name, everyone=everyone)
        return self.project(name)

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Give a user or a project a quota in place of what it had; one that limits nothing takes it away."""
        self._store.owner_quotas.put(kind, name, quota)

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """What all users or all projects may have, and have used."""
        return [one for one in self._store.quotas.uses() if one.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number."""
        return self._store.audit.after(after)
