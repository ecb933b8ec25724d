"""Browsers that log in: sessions, one-time codes, and the wait after a wrong token."""

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

from orchestrator.host.files import own_text
from orchestrator.host.identity import same, seal

log = logging.getLogger(__name__)

ENDED_FILE: Final = "sessions.ended"
"""Keeps which sessions were ended early until they would have ended anyway: a restart brings none of them back."""
SESSION_SECONDS: Final = 30 * 24 * 3600
CODE_SECONDS: Final = 3600
MOST_CODES: Final = 20
"""Unused codes of one user; the user's oldest makes room for the next."""
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 4.0
FORGIVEN_SECONDS: Final = 60.0
"""How long after the last wrong one they are forgotten."""
MOST_WAITING: Final = 32
_LOG_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """One browser's login."""

    id: str
    until: int
    """Unix time at which it ends."""
    token: int | None = None
    """The user's token that it began with, and with which it ends; none: a token of the server."""


class Sessions:
    """The sessions of one server, sealed with its secret; only those that were ended early are kept."""

    def __init__(self, secret: Callable[[], str], home: Path) -> None:
        """`secret` may become another one: then all sessions end."""
        self._asked = secret
        self._file = home / ENDED_FILE
        self._ended = self._read()
        self._lock = threading.Lock()

    @property
    def _secret(self) -> str:
        return self._asked()

    @property
    def cookie(self) -> str:
        """Its name, the home's own: browsers send cookies to every port of a host, so two homes must not share one."""
        return f"metricsweep_{seal(self._secret, 'cookie')[:16]}"

    def begin(
        self, request: Request, answer: Response, token: int | None = None, seconds: int = SESSION_SECONDS
    ) -> None:
        """Give the browser that gets `answer` a session, of a user's token; the secret cannot be read from it."""
        until = int(time.time()) + seconds
        session = BrowserSession(secrets.token_hex(16), until, token)
        answer.set_cookie(
            self.cookie,
            self.sealed(session),
            max_age=seconds,
            httponly=True,
            # Not `strict`: the link that logs in is opened from terminals that are themselves pages, and a strict
            # cookie would stay behind on the way to the page it leads to. What changes anything has its Origin checked.
            samesite="lax",
            secure=request.url.scheme == "https",
        )

    def of(self, request: Request) -> BrowserSession | None:
        """The session that a request shows, if it is one of ours, runs, and was not ended."""
        said, _, given = request.cookies.get(self.cookie, "").rpartition(".")
        if not same(given, seal(self._secret, "session", said)):
            return None
        id_, until, *token = said.split(".")
        session = BrowserSession(id_, int(until), int(token[0]) if token else None)
        return session if self.runs(session) else None

    def runs(self, session: BrowserSession) -> bool:
        """Whether a session of ours has neither run out nor been ended."""
        return session.until > time.time() and session.id not in self._ended

    def lasting(self, session: BrowserSession) -> Callable[[], bool]:
        """What says whether a session that was shown just now still opens anything."""
        sealed_by = self._secret
        return lambda: self.runs(session) and self._secret == sealed_by

    def end(self, session: BrowserSession, answer: Response) -> None:
        """End a session: its cookie opens nothing more, wherever a copy of it is."""
        with self._lock:
            now = time.time()
            self._ended = {id_: until for id_, until in self._ended.items() if until > now}
            self._ended[session.id] = session.until
            own_text(self._file, json.dumps(self._ended))
        answer.delete_cookie(self.cookie, httponly=True, samesite="lax")

    def _read(self) -> dict[str, int]:
        with suppress(OSError, ValueError, AttributeError):
            return {str(id_): int(until) for id_, until in json.loads(self._file.read_text()).items()}
        return {}

    def sealed(self, session: BrowserSession) -> str:
        """The cookie's value."""
        said = f"{session.id}.{session.until}"
        if session.token is not None:
            said += f".{session.token}"
        return f"{said}.{seal(self._secret, 'session', said)}"


class OneTimeLogin(NamedTuple):
    """What a code opens."""

    user: int | None
    """The user's id; `None` stands for the owner, who holds a token of the server."""
    token: int | None
    """The user's token with which the session ends."""


class Codes:
    """The unused codes, in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, OneTimeLogin]] = {}
        self._lock = threading.Lock()

    def new(self, user: int | None = None, token: int | None = None) -> str:
        """A fresh code for a session of a user's token; by default for a session of the owner."""
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
        """What a code would open; it still opens it afterwards."""
        with self._lock:
            return self._valid(self._known.get(code))

    def use(self, code: str) -> OneTimeLogin | None:
        """What a code opens; it opens once."""
        with self._lock:
            return self._valid(self._known.pop(code, None))

    @staticmethod
    def _valid(kept: tuple[float, OneTimeLogin] | None) -> OneTimeLogin | None:
        return kept[1] if kept and kept[0] > time.monotonic() else None


class LoginPatience:
    """How long those wait who were wrong, whoever they are: one line for the whole server, of bounded length.

    Whoever is right is never asked to wait, so that guessing locks nobody out. Only for use in one event loop.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._wrong = 0
        self._last = self._logged = -FORGIVEN_SECONDS

    async def after_wrong(self, who: str) -> bool:
        """Wait as long as a wrong one must; False where too many wait already, and this one is to come back later."""
        now = time.monotonic()
        self._wrong = 1 if now - self._last > FORGIVEN_SECONDS else self._wrong + 1
        self._last = now
        if now - self._logged > _LOG_SECONDS:
            self._logged = now
            log.warning("a wrong token or code from %s; %d wrong ones in a row", who, self._wrong)
        if self.waiting >= MOST_WAITING:
            return False
        self.waiting += 1
        try:
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._wrong - 1, 10)))
        finally:
            self.waiting -= 1
        return True
