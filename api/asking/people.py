"""Users, projects and tokens, asked of a server: for administrators, and one's own tokens."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from orchestrator.views.accounts import AuditEntry, CallerView, NewTokenView, ProjectView, TokenView, UserView
from orchestrator.views.callers import Role, Scope
from orchestrator.views.pages import Page
from orchestrator.views.quotas import Quota, QuotaKind, QuotaUse

if TYPE_CHECKING:
    from api.connection import ServerConnection

AUDIT_SECONDS = 60.0
"""How long the next piece of the audit may take."""


class PeopleClient:
    """Asks a server for who there is, and has it changed; `Client.people` gives one.

    It has the methods of `orchestrator.service.people.People`, which writes in the database of a home.
    """

    def __init__(self, connection: "ServerConnection") -> None:
        self._connection = connection
        self.tokens, self.logins = TokenClient(connection), LoginClient(connection)

    def me(self) -> CallerView:
        """Who asks, and what they may."""
        return self._connection.ask(CallerView, "GET", "/v1/me")

    def users(self) -> Iterator[UserView]:
        """All users, the oldest first."""
        return self._connection.pages("/v1/users", {}, Page[UserView])

    def user(self, name: str) -> UserView:
        """One user."""
        return self._connection.ask(UserView, "GET", _user(name))

    def projects(self) -> Iterator[ProjectView]:
        """All projects, the oldest first."""
        return self._connection.pages("/v1/projects", {}, Page[ProjectView])

    def project(self, name: str) -> ProjectView:
        """One project."""
        return self._connection.ask(ProjectView, "GET", _project(name))

    def add_user(self, name: str, role: Role, project: str | None) -> UserView:
        """Make a user, in a project or none."""
        body = {"name": name, "role": role, "project": project}
        return self._connection.ask(UserView, "POST", "/v1/users", json=body)

    def join(self, name: str, project: str, role: Role) -> UserView:
        """Have a user be in a project: a viewer looks, anybody else steers."""
        return self._connection.ask(UserView, "PUT", _place(name, project), json={"role": role})

    def leave(self, name: str, project: str) -> UserView:
        """Have a user be in a project no more."""
        return self._connection.ask(UserView, "DELETE", _place(name, project))

    def set_role(self, name: str, role: Role) -> UserView:
        """Give a user another role."""
        return self._connection.ask(UserView, "PATCH", _user(name), json={"role": role})

    def disable(self, name: str, *, disabled: bool) -> UserView:
        """Have nothing of a user's open anything, or all of it again."""
        return self._connection.ask(UserView, "PATCH", _user(name), json={"disabled": disabled})

    def add_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Make a project, which its members see, or everybody."""
        return self._connection.ask(ProjectView, "POST", "/v1/projects", json={"name": name, "open": everyone})

    def open_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Have a project be seen by every user, or by its members alone."""
        return self._connection.ask(ProjectView, "PATCH", _project(name), json={"open": everyone})

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Give a user or a project a quota in place of what it had; one that limits nothing takes it away."""
        path = f"/v1/quotas/{kind}/{quote(name, safe='')}"
        self._connection.ask(list[QuotaUse], "PUT", path, json=quota.model_dump(mode="json"))

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """What users or projects may have, and have used."""
        return [one for one in self._connection.ask(list[QuotaUse], "GET", "/v1/quotas") if one.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number."""
        with self._connection.streamed("/v1/audit", AUDIT_SECONDS, {"after": after}) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                yield from map(AuditEntry.model_validate_json, lines)


class TokenClient:
    """Asks a server for tokens; `PeopleClient.tokens` is one."""

    def __init__(self, connection: "ServerConnection") -> None:
        self._connection = connection

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """One's own tokens, or an administrator's choice: those of a user, or of all."""
        return self._connection.pages("/v1/tokens", {"user": user}, Page[TokenView])

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, key: str | None = None
    ) -> NewTokenView:
        """A new token, with what opens; without a user one's own. The same key gives the same token."""
        body = {"user": user, "name": name, "scope": scope, "days": days or 0}
        headers = {"Idempotency-Key": key} if key else {}
        return self._connection.ask(NewTokenView, "POST", "/v1/tokens", json=body, headers=headers)

    def revoke(self, number: int) -> TokenView:
        """Have a token, and the sessions that began with it, open nothing from now on."""
        return self._connection.ask(TokenView, "DELETE", f"/v1/tokens/{number}")


class LoginClient:
    """Links users with a provider's logins; `PeopleClient.logins` is one."""

    def __init__(self, connection: "ServerConnection") -> None:
        self._connection = connection

    def link(self, name: str, subject: str, issuer: str | None = None) -> UserView:
        """Say by which number a provider knows a user, who then comes in by it; without an issuer the server's."""
        body = {"subject": subject, "issuer": issuer}
        return self._connection.ask(UserView, "PUT", f"{_user(name)}/login", json=body)

    def unlink(self, name: str) -> UserView:
        """Have no provider log a user in, and end the browsers that one let in."""
        return self._connection.ask(UserView, "DELETE", f"{_user(name)}/login")


def _user(name: str) -> str:
    return f"/v1/users/{quote(name, safe='')}"


def _project(name: str) -> str:
    return f"/v1/projects/{quote(name, safe='')}"


def _place(user: str, project: str) -> str:
    return f"{_project(project)}/members/{quote(user, safe='')}"
