"""One-time codes: each opens one session, once, within the hour."""

import secrets
import threading
import time
from typing import Final, NamedTuple

CODE_SECONDS: Final = 3600
MOST_CODES: Final = 100


class OneTimeLogin(NamedTuple):
    """What a code opens."""

    token: int | None
    """A session of the user with this token; none: of who holds a token of the server."""


class Codes:
    """The codes that were given out and not used yet, in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, OneTimeLogin]] = {}
        self._lock = threading.Lock()

    def new(self, token: int | None = None) -> str:
        """A fresh code for a session of a user's token; the oldest gives way where there are too many."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._known) >= MOST_CODES:
                del self._known[next(iter(self._known))]
            self._known[code] = time.monotonic() + CODE_SECONDS, OneTimeLogin(token)
        return code

    def use(self, code: str) -> OneTimeLogin | None:
        """What a code opens; it opens once."""
        with self._lock:
            until, login = self._known.pop(code, (0.0, None))
        return login if until > time.monotonic() else None
