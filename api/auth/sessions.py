"""Browser logins: sessions, one-time codes, and the delay after a wrong token."""

import asyncio
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fastapi import Request
from fastapi.responses import Response

from orchestrator.host.disk import replace_file
from orchestrator.host.identity import same, seal

log = logging.getLogger(__name__)

_ENDED_FILE: Final = "sessions.ended"
"""Lists the sessions that were ended early, so that a restart does not revive them."""
SESSION_SECONDS: Final = 30 * 24 * 3600
CODE_SECONDS: Final = 3600
MOST_CODES: Final = 20
"""Unused codes of one user; a further code replaces the oldest."""
LINK_SECONDS: Final = 365 * 24 * 3600
"""How long a browser keeps the secrets of share links; the server knows when each expires."""
MOST_LINKS: Final = 10
"""Share links that a browser keeps; a further one replaces the oldest."""
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 4.0
FORGIVEN_SECONDS: Final = 60.0
"""How long after the last wrong token the count of wrong tokens starts again."""
MOST_WAITING: Final = 32
_LOG_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One browser's login."""

    id: str
    until: int
    """Unix time at which it ends."""
    token: int | None = None
    """The id of the user's token with which it began and with which it ends; `None` means a token of the server."""


class Sessions:
    """The login sessions of browsers, signed with the server's key; only sessions ended early are stored."""

    def __init__(self, secret: Callable[[], str], home: Path) -> None:
        """`secret` returns the current secret; when it changes, all sessions end."""
        self._secret = secret
        self._file = home / _ENDED_FILE
        self._ended = self._read()
        self._lock = threading.Lock()

    @property
    def cookie(self) -> str:
        """The name of the session cookie. Each home has its own, since a host's ports share cookies."""
        return f"metricsweep_{seal(self._secret(), 'cookie')[:16]}"

    def begin(
        self, request: Request, answer: Response, token: int | None = None, seconds: int = SESSION_SECONDS
    ) -> None:
        """Give the browser that gets `answer` a session; `token` is the id of the user's token that it belongs to."""
        until = int(time.time()) + seconds
        session = BrowserSession(secrets.token_hex(16), until, token)
        answer.set_cookie(
            self.cookie,
            self.sealed(session),
            max_age=seconds,
            httponly=True,
            # Not `strict`: login links are opened from terminals in web pages, and a strict cookie would not be sent
            # with the redirect that follows. Requests that change something have their Origin checked.
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def of(self, request: Request) -> BrowserSession | None:
        """The valid session whose cookie a request sends, or `None`."""
        content, _, signature = request.cookies.get(self.cookie, "").rpartition(".")
        if not same(signature, seal(self._secret(), "session", content)):
            return None
        id_, until, *token = content.split(".")
        session = BrowserSession(id_, int(until), int(token[0]) if token else None)
        return session if self.runs(session) else None

    @property
    def _links_cookie(self) -> str:
        return f"{self.cookie}_links"

    def links(self, request: Request) -> list[str]:
        """The secrets of the share links that a browser has opened, which may be wrong or revoked."""
        return [secret for secret in request.cookies.get(self._links_cookie, "").split(".") if secret][-MOST_LINKS:]

    def keep_link(self, request: Request, answer: Response, secret: str) -> None:
        """Have the browser that gets `answer` send the secret of a share link, next to those it has opened before."""
        kept = [*(known for known in self.links(request) if known != secret), secret][-MOST_LINKS:]
        https = request.url.scheme == "https"
        answer.set_cookie(
            self._links_cookie, ".".join(kept), max_age=LINK_SECONDS, httponly=True, samesite="lax", secure=https
        )

    def forget_links(self, answer: Response) -> None:
        """Delete the cookie of share links, since none of them is valid."""
        answer.delete_cookie(self._links_cookie, httponly=True, samesite="lax")

    def runs(self, session: BrowserSession) -> bool:
        """Whether a session has neither expired nor been ended."""
        return session.until > time.time() and session.id not in self._ended

    def lasting(self, session: BrowserSession) -> Callable[[], bool]:
        """A function that says whether a session that is valid now is still valid."""
        signed_by = self._secret()
        return lambda: self.runs(session) and self._secret() == signed_by

    def end(self, session: BrowserSession, answer: Response) -> None:
        """End a browser session: its cookie, and every copy of it, becomes invalid."""
        with self._lock:
            now = time.time()
            self._ended = {id_: until for id_, until in self._ended.items() if until > now}
            self._ended[session.id] = session.until
            replace_file(self._file, json.dumps(self._ended).encode(), mode=0o600)
        answer.delete_cookie(self.cookie, httponly=True, samesite="lax")

    def _read(self) -> dict[str, int]:
        with suppress(OSError, ValueError, AttributeError):
            return {str(id_): int(until) for id_, until in json.loads(self._file.read_text()).items()}
        return {}

    def sealed(self, session: BrowserSession) -> str:
        """A session as the value of its cookie: JSON, signed with the server's key."""
        content = f"{session.id}.{session.until}"
        if session.token is not None:
            content += f".{session.token}"
        return f"{content}.{seal(self._secret(), 'session', content)}"


class OneTimeLogin(NamedTuple):
    """The login that the code of a one-time link gives."""

    user: int | None
    """The user's id; `None` means the owner, who holds a token of the server."""
    token: int | None
    """The id of the user's token with which the session ends."""


class Codes:
    """The unused codes of one-time login links, in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, OneTimeLogin]] = {}
        self._lock = threading.Lock()

    def new(self, user: int | None = None, token: int | None = None) -> str:
        """Make the code of a one-time link, for a session of a user's token; by default of the owner."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            now = time.monotonic()
            self._known = {known: kept for known, kept in self._known.items() if kept[0] > now}
            own = [known for known, (_, login) in self._known.items() if login.user == user]
            for oldest in own[: max(0, len(own) - MOST_CODES + 1)]:
                del self._known[oldest]
            self._known[code] = now + CODE_SECONDS, OneTimeLogin(user, token)
        return code

    def known(self, code: str) -> OneTimeLogin | None:
        """The login that a one-time code gives, without using the code."""
        with self._lock:
            return self._valid(self._known.get(code))

    def use(self, code: str) -> OneTimeLogin | None:
        """The login that a one-time code gives; the code becomes invalid."""
        with self._lock:
            return self._valid(self._known.pop(code, None))

    @staticmethod
    def _valid(kept: tuple[float, OneTimeLogin] | None) -> OneTimeLogin | None:
        return kept[1] if kept and kept[0] > time.monotonic() else None


class LoginPatience:
    """The delay after a wrong token: one queue for all clients, of limited length.

    A right token never waits, so that guessing locks nobody out. For use in one event loop only.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._wrong = 0
        self._last = self._logged = -FORGIVEN_SECONDS

    async def after_wrong(self, source: str) -> bool:
        """Wait, longer after each further wrong token; returns False at once if too many clients wait already."""
        now = time.monotonic()
        self._wrong = 1 if now - self._last > FORGIVEN_SECONDS else self._wrong + 1
        self._last = now
        if now - self._logged > _LOG_SECONDS:
            self._logged = now
            log.warning("a wrong token or code from %s; %d wrong ones in a row", source, self._wrong)
        if self.waiting >= MOST_WAITING:
            return False
        self.waiting += 1
        try:
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._wrong - 1, 10)))
        finally:
            self.waiting -= 1
        return True
