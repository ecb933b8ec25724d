"""One-time codes: each opens one session, once, within the hour."""

import secrets
import threading
import time
from typing import Final, NamedTuple

CODE_SECONDS: Final = 3600
MOST_CODES: Final = 20
"""Unused codes of one user; the user's oldest makes room for the next."""


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
