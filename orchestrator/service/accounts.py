"""Users, projects, tokens and logins: what administrators, users and a home's owner may do."""

import getpass
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from orchestrator.host import checks
from orchestrator.host.files import own_folder
from orchestrator.host.identity import TOKEN_PREFIX, digest, new_token, token_of
from orchestrator.record.account_admin import HOW
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.accounts import (
    ACCOUNT_NAME,
    OWNER,
    SUBJECT,
    AuditEntry,
    Caller,
    CallerView,
    LoginTerms,
    NewTokenView,
    Person,
    ProjectView,
    Quota,
    QuotaKind,
    QuotaUse,
    Role,
    Scope,
    TokenView,
    UserView,
    caller,
    calling,
)
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.pages import Page, each


@contextmanager
def owning(settings: Settings) -> "Iterator[People]":
    """The owner's work on a home that has been served; raises NotFoundError where there is no database."""
    own_folder(settings.resolved_home)
    if not _is_there(settings):
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    from orchestrator.record.store import Store

    store = Store.of(settings)
    try:
        with calling(Caller(name=f"{_account()} on this machine"), socket.gethostname()):
            yield People(store, settings.oidc_issuer)
    finally:
        store.close()


def refuse_newer_database(settings: Settings) -> None:
    """Raise UnavailableError where a newer release has upgraded the database, or it does not answer."""
    if _is_there(settings):
        from orchestrator.record.store import Store

        Store.of(settings, migrate=False).close()


def _is_there(settings: Settings) -> bool:
    """Whether there is a database; of one that is named, it is for whoever opens it to find out."""
    return bool(settings.database_url) or (settings.resolved_home / "metricsweep.db").exists()


def _account() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        return str(os.getuid())


class AccountQueries:
    """Looks up what somebody may do, each time anew: what is revoked opens nothing from the next request on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_text(self, given: str) -> Caller | None:
        """Whose token a text is; none where it opens nothing, or is none of ours at all."""
        text = given.strip()
        return self._store.accounts.by_hash(digest(text)) if text.startswith(TOKEN_PREFIX) else None

    def of_token(self, number: int) -> Caller | None:
        """Whose token of this number is, as of now."""
        return self._store.accounts.by_token(number)

    def of_name(self, name: str) -> Caller | None:
        """The user of this name, of whom somebody trusted says that it is they."""
        return self._store.accounts.by_name(name)

    def again(self, callers: Iterable[Caller]) -> dict[Caller, Caller]:
        """Those of the callers who may still ask, each with what it may now."""
        found = ((who, self._store.accounts.again(who)) for who in callers)
        return {who: now for who, now in found if now is not None}

    def any(self) -> bool:
        """Whether there are users at all."""
        return self._store.accounts.any()

    def entered(self, who: Caller | None, how: str) -> None:
        """Have the audit tell that somebody logged a browser in; none: who holds a token of the server."""
        self._store.audited.entered(who or OWNER, how)

    def audit(self, after: int) -> Iterator[AuditEntry]:
        """Who did what, the oldest first, after the entry of a number; for who sees all projects."""
        return self._store.audit.after(after)

    def view(self, who: Caller) -> CallerView:
        """What a caller may, in the names of projects."""
        return CallerView(
            name=who.name, role=who.role, scope=who.scope, sees=self._store.accounts.names_of(who.seen),
            steers=self._store.accounts.names_of(who.steered),
        )  # fmt: skip


MOST_REFUSED: Final = 200
"""Refusals that the audit is told of within an hour: a stranger with a program shall not fill the disk."""
_HOUR: Final = 3600.0


class Logins:
    """Lets in whom a provider has named; safe to share between threads."""

    def __init__(self, store: Store, issuer: str = "", now: Callable[[], float] = time.monotonic) -> None:
        """`issuer`: the provider that is meant where none is named."""
        self._store, self._issuer, self._now = store, issuer, now
        self._lock = threading.Lock()
        self._since, self._told, self._untold = now(), 0, 0

    def enter(self, person: Person, terms: LoginTerms) -> Caller:
        """Let a browser in, with a token of its own; LoginRefusedError."""
        return self._store.logins.enter(person, terms)

    def leave(self, token: int) -> bool:
        """End the token of a browser that a provider let in; whether it is one."""
        return self._store.logins.leave(token)

    def link(self, name: str, subject: str, issuer: str | None = None) -> UserView:
        """Say by which number a provider knows a user, who then comes in by it; NotFoundError, ConflictError."""
        whose = issuer or self._issuer
        if not whose:
            raise ConflictError("no provider is set up (METRICSWEEP_OIDC_ISSUER), and none was named")
        if not re.fullmatch(SUBJECT, subject):
            raise ConflictError(f"a subject is 1 to 255 visible ASCII characters, not {subject[:80]!r}")
        try:
            checks.issuer(whose)
        except ValueError as error:
            raise ConflictError(str(error)) from None
        self._store.logins.link(name, whose, subject)
        return self._store.directory.user(name)

    def unlink(self, name: str) -> UserView:
        """Have no provider log a user in, and end the browsers that one let in; NotFoundError."""
        self._store.logins.unlink(name)
        return self._store.directory.user(name)

    def refused(self, why: str) -> None:
        """Have the audit tell of somebody who was not let in, and of how many it was not told."""
        with self._lock:
            if self._now() - self._since > _HOUR:
                self._since, self._told = self._now(), 0
            if self._told >= MOST_REFUSED:
                self._untold += 1
                return
            self._told += 1
            more, self._untold = self._untold, 0
        self._store.audited.refused(HOW, f"{why} (and {more} before, which were too many to tell)" if more else why)


class Tokens:
    """Writes tokens, of which the hash is kept and nothing else."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """Tokens of all, or of a user, the oldest first; to who is no administrator their own alone."""
        return each(lambda cursor: self.page(cursor, user=user))

    def page(self, cursor: str | None = None, limit: int = 200, user: str | None = None) -> Page[TokenView]:
        """Some of them."""
        who = caller()
        if not who.administers and user not in (None, who.name):
            return Page[TokenView](items=[])
        return self._store.directory.tokens(cursor, limit, user if who.administers else who.name)

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, once: tuple[str, str] | None = None
    ) -> NewTokenView:
        """A new token of a user, or one's own, with what opens; `days` of none: until it is revoked.

        With `once`, a secret of the server's and a key of the caller's, the same key gives the same token.
        """
        who = caller()
        whose = user or (who.name if who.user is not None else None)
        if whose is None:
            raise ConflictError("you are no user of this server: say whose token it is to be")
        text = new_token() if once is None else token_of(once[0], str(who.user or ""), whose, once[1])
        named(name, "token")
        until = None if days is None else datetime.now(UTC) + timedelta(days=days)
        number, _ = self._store.owner.add_token(whose, name, digest(text), scope, until)
        return NewTokenView(**self._store.directory.token(number).model_dump(), token=text)

    def revoke(self, number: int) -> TokenView:
        """Have a token, and the sessions that began with it, open nothing from now on; NotFoundError."""
        self._store.owner.revoke(number)
        return self._store.directory.token(number)


def named(name: str, kind: str) -> str:
    """The name of a user, project or token; raises ConflictError where it is none."""
    if not re.fullmatch(ACCOUNT_NAME, name):
        said = "1 to 64 of a-z, 0-9 and ._@-, the first a letter or a digit"
        raise ConflictError(f"a {kind}'s name is {said}, not {name[:80]!r}")
    return name


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
