"""Users, projects, tokens and logins, for administrators, users and the owner of a home."""

import getpass
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from orchestrator.host import checks
from orchestrator.host.files import own_folder
from orchestrator.host.identity import digest, new_token, token_of
from orchestrator.record.account_admin import HOW
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.accounts import (
    ACCOUNT_NAME,
    SUBJECT,
    AuditEntry,
    Caller,
    NewTokenView,
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
    """Manage the accounts of a home that has been served, as its owner; raises NotFoundError without a database."""
    own_folder(settings.resolved_home)
    if not _has_database(settings):
        raise NotFoundError(f"there is no database in {settings.home}; `metricsweep serve --home` makes one")
    try:
        account = getpass.getuser()
    except (OSError, KeyError):  # a container whose user has no name
        account = str(os.getuid())
    store = Store.of(settings)
    try:
        with calling(Caller(name=f"{account} on this machine"), socket.gethostname()):
            yield People(store, settings.oidc_issuer)
    finally:
        store.close()


def refuse_newer_database(settings: Settings) -> None:
    """Raise UnavailableError if a newer release has upgraded the database, or if it does not answer."""
    if _has_database(settings):
        Store.of(settings, migrate=False).close()


def _has_database(settings: Settings) -> bool:
    return bool(settings.database_url) or (settings.resolved_home / "metricsweep.db").exists()


MOST_REFUSED: Final = 200
"""Refused logins that the audit records within an hour, so that an attacker cannot fill the disk."""
_HOUR: Final = 3600.0


class Logins:
    """Links users with logins of an OpenID Connect provider; safe to share between threads."""

    def __init__(self, store: Store, issuer: str = "", now: Callable[[], float] = time.monotonic) -> None:
        """`issuer` is the default provider."""
        self._store, self._issuer, self._now = store, issuer, now
        self._lock = threading.Lock()
        self._since, self._recorded, self._unrecorded = now(), 0, 0

    def link(self, name: str, subject: str, issuer: str | None = None) -> UserView:
        """Set the OpenID subject by which a user can log in; raises NotFoundError, ConflictError."""
        whose = issuer or self._issuer
        if not whose:
            raise ConflictError("no OpenID provider is set (METRICSWEEP_OIDC_ISSUER); name its issuer")
        if not re.fullmatch(SUBJECT, subject):
            raise ConflictError(f"a subject is 1 to 255 visible ASCII characters, not {subject[:80]!r}")
        try:
            checks.issuer(whose)
        except ValueError as error:
            raise ConflictError(str(error)) from None
        self._store.logins.link(name, whose, subject)
        return self._store.directory.user(name)

    def unlink(self, name: str) -> UserView:
        """Remove the OpenID link of a user, and end the browser sessions that began by it; raises NotFoundError."""
        self._store.logins.unlink(name)
        return self._store.directory.user(name)

    def refused(self, why: str) -> None:
        """Record a refused login in the audit, with the number of earlier refusals that were not recorded."""
        with self._lock:
            if self._now() - self._since > _HOUR:
                self._since, self._recorded = self._now(), 0
            if self._recorded >= MOST_REFUSED:
                self._unrecorded += 1
                return
            self._recorded += 1
            more, self._unrecorded = self._unrecorded, 0
        self._store.audit.refused(HOW, f"{why} (and {more} before, which were too many to record)" if more else why)


class Tokens:
    """Makes, lists and revokes API tokens; the store keeps only their hashes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, user: str | None = None) -> Iterator[TokenView]:
        """The API tokens of all users or of one user, the oldest first; only administrators see those of others."""
        return each(lambda cursor: self.page(cursor, user=user))

    def page(self, cursor: str | None = None, limit: int = 200, user: str | None = None) -> Page[TokenView]:
        """A page of API tokens, of all users or of one."""
        who = caller()
        if not who.administers and user not in (None, who.name):
            return Page[TokenView](items=[])
        return self._store.directory.tokens(cursor, limit, user if who.administers else who.name)

    def add(
        self, user: str | None, name: str, scope: Scope, days: float | None, once: tuple[str, str] | None = None
    ) -> NewTokenView:
        """A new token, with its text, of a user (`None` means the caller), for some days (`None` means until revoked).

        With `once`, a secret of the server and a key of the caller, the same key gives the same token.
        """
        who = caller()
        whose = user or (who.name if who.user is not None else None)
        if whose is None:
            raise ConflictError("you are not a user of this server; name the user who gets the token")
        text = new_token() if once is None else token_of(once[0], str(who.user or ""), whose, once[1])
        named(name, "token")
        until = None if days is None else datetime.now(UTC) + timedelta(days=days)
        number, _ = self._store.owner.add_token(whose, name, digest(text), scope, until)
        return NewTokenView(**self._store.directory.token(number).model_dump(), token=text)

    def revoke(self, number: int) -> TokenView:
        """Revoke a token and the browser sessions that began with it; NotFoundError."""
        self._store.owner.revoke(number)
        return self._store.directory.token(number)


def named(name: str, kind: str) -> str:
    """The checked name of a user, project or token; raises ConflictError."""
    if not re.fullmatch(ACCOUNT_NAME, name):
        rule = "1 to 64 of a-z, 0-9 and ._@-, the first a letter or a digit"
        raise ConflictError(f"a {kind}'s name is {rule}, not {name[:80]!r}")
    return name


class People:
    """Manages users and projects; changes hold from the next request on. Raises NotAllowedError."""

    def __init__(self, store: Store, issuer: str = "") -> None:
        """`issuer` is the default login provider."""
        self._store = store
        self.tokens, self.logins = Tokens(store), Logins(store, issuer)

    def users(self) -> Iterator[UserView]:
        """All users, the oldest first."""
        return each(lambda cursor: self._store.directory.users(cursor, 200))

    def user(self, name: str) -> UserView:
        """One user; NotFoundError."""
        return self._store.directory.user(name)

    def projects(self) -> Iterator[ProjectView]:
        """All projects, the oldest first."""
        return each(lambda cursor: self._store.directory.projects(cursor, 200))

    def project(self, name: str) -> ProjectView:
        """One project; NotFoundError."""
        return self._store.directory.project(name)

    def add_user(self, name: str, role: Role, project: str | None) -> UserView:
        """Add a user, optionally to a project; raises ConflictError, and NotFoundError for the project."""
        self._store.owner.add_user(named(name, "user"), role, project)
        return self.user(name)

    def join(self, name: str, project: str, role: Role) -> UserView:
        """Add a user to a project; every role but viewer may change its sweeps. NotFoundError."""
        self._store.owner.join(name, project, steers=role is not Role.VIEWER)
        return self.user(name)

    def leave(self, name: str, project: str) -> UserView:
        """Remove a user from a project; NotFoundError."""
        self._store.owner.leave(name, project)
        return self.user(name)

    def set_role(self, name: str, role: Role) -> UserView:
        """Give a user another role; NotFoundError."""
        self._store.owner.set_role(name, role)
        return self.user(name)

    def disable(self, name: str, *, disabled: bool) -> UserView:
        """Disable a user and all their tokens, or enable them again; NotFoundError."""
        self._store.owner.disable(name, disabled=disabled)
        return self.user(name)

    def add_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Add a project, visible to its members or to every user; ConflictError."""
        self._store.owner.add_project(named(name, "project"), everyone=everyone)
        return self.project(name)

    def open_project(self, name: str, *, everyone: bool) -> ProjectView:
        """Make a project visible to every user, or to its members alone; NotFoundError."""
        self._store.owner.open_project(name, everyone=everyone)
        return self.project(name)

    def set_quota(self, kind: QuotaKind, name: str, quota: Quota) -> None:
        """Replace the quota of a user or a project; a quota without limits removes it."""
        self._store.owner.set_quota(kind, name, quota)

    def quotas(self, kind: QuotaKind) -> list[QuotaUse]:
        """The quotas of all users or all projects, and their use."""
        return [use for use in self._store.quotas.uses() if use.kind == kind]

    def audit(self, after: int = 0) -> Iterator[AuditEntry]:
        """The entries of the audit after this number, the oldest first."""
        return self._store.audit.after(after)
