"""The standby's own judgement of the lease: whether its holder has been silent for the lease's whole length."""

import time
from collections.abc import Callable

from orchestrator.record.writes.lease import Held


class Standby:
    """Goes by the monotonic clock, so that a database's clock that was set back keeps no dead conductor alive."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: Held | None = None
        self._since = 0.0

    def lapsed(self, held: Held | None) -> Held | None:
        """`held`, the lease as it is now, where it has been the same for longer than it lasts; else none."""
        if held is None or held != self._seen:
            self._seen, self._since = held, self._now()
            return None
        return held if self._now() - self._since > held.seconds else None
