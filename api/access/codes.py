"""One-time codes: each opens one session, once, within the hour."""

import secrets
import threading
import time
from typing import Final

CODE_SECONDS: Final = 3600
MOST_CODES: Final = 100


class Codes:
    """The codes that were given out and not used yet, in memory; safe to share between threads."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = threading.Lock()

    def new(self) -> str:
        """A fresh code; the oldest gives way where there are too many."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            while len(self._until) >= MOST_CODES:
                del self._until[next(iter(self._until))]
            self._until[code] = time.monotonic() + CODE_SECONDS
        return code

    def use(self, code: str) -> bool:
        """Whether a code was good; it is good once."""
        with self._lock:
            return self._until.pop(code, 0.0) > time.monotonic()
