"""The pages of users and projects, and of tokens."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from dashboards.rendering import render
from orchestrator.views.accounts import Caller, NewTokenView, ProjectView, Role, Scope, TokenView, UserView
from orchestrator.views.pages import Page

SCOPES: Final = {
    Scope.READ: "looks at what its user sees",
    Scope.WRITE: "does what its user may as a member",
    Scope.ADMIN: "does all that its user may",
    Scope.MLFLOW: "opens MLflow and nothing else",
    Scope.METRICS: "opens /metrics and nothing else",
}
"""What a token of each opens."""
OF_ADMINISTRATORS: Final = frozenset({Scope.ADMIN, Scope.METRICS})
"""Those that nobody else gives."""


def people_page(
    users: Page[UserView], projects: Sequence[ProjectView], provider: str = "", *, now: datetime | None = None
) -> str:
    """Who there is, and what may be done to them; `provider`: who else logs people in, if anybody."""
    further = f"/people?{urlencode({'cursor': users.next_cursor})}" if users.next_cursor else None
    return render(
        "people.html", now, users=users.items, projects=projects, roles=list(Role), further=further, provider=provider
    )


def tokens_page(
    tokens: Page[TokenView],
    whose: str,
    who: Caller,
    made: NewTokenView | None = None,
    *,
    now: datetime | None = None,
) -> str:
    """Tokens of a user, or of all where none is named; `made` is the one whose text is shown now, and never again."""
    scopes = {one: said for one, said in SCOPES.items() if who.administers or one not in OF_ADMINISTRATORS}
    kept = {"user": whose} if whose and whose != who.name else {}
    query = kept | {"cursor": tokens.next_cursor or ""}
    return render(
        "tokens.html", now, tokens=tokens.items, whose=whose, mine=whose == who.name, made=made, scopes=scopes,
        may=who.user is None or who.scope in (Scope.WRITE, Scope.ADMIN), everlasting=who.administers,
        further=f"/tokens?{urlencode(query)}" if tokens.next_cursor else None,
    )  # fmt: skip
