"""Wrong tokens and codes are answered late, and ever later; a right one never waits."""

import asyncio
import logging
import time
from typing import Final

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 4.0
FORGIVEN_SECONDS: Final = 60.0
"""How long after the last wrong one they are forgotten."""
MOST_WAITING: Final = 32
_LOG_SECONDS: Final = 60.0


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
