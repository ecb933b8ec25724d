"""Logins by a provider of OpenID Connect: which user each is, whom administrators link, and what was refused."""

import re
import threading
import time
from collections.abc import Callable
from typing import Final

from orchestrator.host import oidc_settings
from orchestrator.record.store import Store
from orchestrator.record.writes.logins import HOW
from orchestrator.views.accounts import UserView
from orchestrator.views.callers import Caller
from orchestrator.views.errors import ConflictError
from orchestrator.views.logins import SUBJECT, LoginTerms, Person

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
            oidc_settings.issuer(whose)
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
