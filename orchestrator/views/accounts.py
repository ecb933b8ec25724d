"""Users, their projects and their tokens, as those see them who manage them."""

from datetime import datetime
from typing import Final

from pydantic import Field

from orchestrator.views.callers import Role, Scope
from orchestrator.views.logins import LoginView
from orchestrator.views.pages import View

ACCOUNT_NAME: Final = r"^[a-z0-9][a-z0-9._@-]{0,63}$"
"""Names of users, projects and tokens: they stand in paths, logs and headers."""


class MembershipView(View):
    """A user's place in a project."""

    project: str
    role: Role
    """`viewer` looks, `member` submits and steers."""


class UserView(View):
    """A user."""

    name: str
    role: Role
    created: datetime
    disabled: datetime | None = None
    projects: list[MembershipView] = Field(default_factory=list)
    login: LoginView | None = None
    """Which provider logs it in; none: none does."""


class ProjectView(View):
    """A project: what is open is seen by every user, and steered by its members."""

    name: str
    open: bool
    created: datetime
    members: list[str] = Field(default_factory=list)


class TokenView(View):
    """A token, without what opens: that is shown once, when it is made."""

    id: int
    user: str
    name: str
    scope: Scope
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    browser: bool = False
    """Whether it is of a browser that a provider logged in: then nobody has what it opens with."""


class NewTokenView(TokenView):
    """A token that was just made."""

    token: str
    """What opens; it is shown this once, and kept nowhere."""


class CallerView(View):
    """Who asks, and what they may."""

    name: str | None = None
    """None: the token is the server's own."""
    role: Role
    scope: Scope
    sees: list[str]
    """Projects whose sweeps are shown."""
    steers: list[str]
    """Projects to which may be submitted, and whose sweeps may be steered."""


class AuditEntry(View):
    """Who did what; it outlives what it tells of."""

    id: int
    at: datetime
    who: str
    user: int | None = None
    """The number of the user; none: who holds a token of the server."""
    token: int | None = None
    what: str
    target: str
    detail: str = ""
    address: str = ""
    """From where it was asked; a command on the machine of the home names that."""
    request: str = ""
    """`X-Request-ID` of the answer."""
