"""Waiting for the lease, and keeping it with a heartbeat."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from orchestrator.record.lease import HeldLease
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import MetricsweepError, UnavailableError

log = logging.getLogger(__name__)


class Heartbeat(threading.Thread):
    """Calls `beat` regularly in a thread, until `end` is called or `beat` returns False; renews the lease."""

    def __init__(self, name: str, beat: Callable[[], bool], seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._beat, self._seconds = beat, seconds
        self._end = threading.Event()
        self.lost = threading.Event()

    def run(self) -> None:
        """Beat until ended; errors are logged."""
        while not self._end.wait(self._seconds):
            try:
                if not self._beat():
                    self.lost.set()
                    return
            except MetricsweepError as error:
                log.warning("%s: %s", self.name, error)
            except Exception:
                log.exception("%s", self.name)

    def end(self, patience: float) -> bool:
        """Stop the heartbeat and wait for its thread; returns whether it has ended."""
        self._end.set()
        if self.is_alive():
            self.join(patience)
        return not self.is_alive()


class Standby:
    """Waits for the conductor's lease, by a monotonic clock, since the database's clock may be set back."""

    def __init__(self, store: Store, seconds: float) -> None:
        self._store, self._seconds = store, seconds
        self._seen: HeldLease | None = None
        self._since = 0.0

    def take_lease(self, closing: Callable[[], bool]) -> Writer | None:
        """Wait for the lease and for a database that answers; `None` if closing before the lease was free."""
        holder = f"{socket.gethostname()}:{os.getpid()}"
        reported = False
        while not closing():
            try:
                held = self._store.lease.held()
                lapsed = self.lapsed(held)
                # While another conductor holds it, do not write: the holder would have to wait.
                available = held is None or held.free or lapsed is not None
                fence = self._store.lease.acquire(holder, self._seconds, lapsed) if available else None
            except UnavailableError as error:
                log.warning("standing by: %s", error)
            else:
                if fence is not None:
                    log.info("holding the lease with fence %d", fence)
                    return self._store.writer(fence)
                if not reported:
                    log.info("another conductor holds the lease; standing by")
                    reported = True
            time.sleep(min(1.0, self._seconds / 5))
        return None

    def lapsed(self, held: HeldLease | None) -> HeldLease | None:
        """The lease `held` if it was not renewed for longer than it lasts; else `None`."""
        if held is None or held != self._seen:
            self._seen, self._since = held, time.monotonic()
            return None
        return held if time.monotonic() - self._since > held.seconds else None
