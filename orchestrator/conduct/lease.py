"""Waiting for the lease, and keeping it with a heartbeat."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable

from orchestrator.record.lease import Held
from orchestrator.record.store import Store, Writer
from orchestrator.views.errors import MetricsweepError, UnavailableError

log = logging.getLogger(__name__)


class Heartbeat(threading.Thread):
    """Calls `beat` every so many seconds until it is ended, or until `beat` answers False."""

    def __init__(self, name: str, beat: Callable[[], bool], seconds: float) -> None:
        super().__init__(name=name, daemon=True)
        self._beat, self._seconds = beat, seconds
        self._end = threading.Event()
        self.lost = threading.Event()

    def run(self) -> None:
        """Beat until ended; whatever one beat's error is, it is logged and the next beat comes."""
        while not self._end.wait(self._seconds):
            try:
                if not self._beat():
                    self.lost.set()
                    return
            except MetricsweepError as error:
                log.warning("%s: %s", self.name, error)
            except Exception:
                log.exception("%s", self.name)

    def end(self, patience: float = 10.0) -> None:
        """Stop beating and wait for the thread."""
        self._end.set()
        if self.is_alive():
            self.join(patience)


class Standby:
    """Goes by the monotonic clock, so that a database's clock that was set back keeps no dead conductor alive."""

    def __init__(self, store: Store, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._seconds, self._now = store, seconds, now
        self._seen: Held | None = None
        self._since = 0.0

    def take_lease(self, closing: Callable[[], bool]) -> Writer | None:
        """What the holder of the lease writes with; none when asked to close before it was free.

        While the database does not answer it is waited for, as by who holds the lease.
        """
        holder = f"{socket.gethostname()}:{os.getpid()}"
        told = False
        while not closing():
            try:
                held = self._store.lease.held()
                lapsed = self.lapsed(held)
                # While another holds it nothing is written, which whoever works would have to wait for.
                open_to_us = held is None or held.free or lapsed is not None
                fence = self._store.lease.acquire(holder, self._seconds, lapsed) if open_to_us else None
            except UnavailableError as error:
                log.warning("standing by all the same: %s", error)
            else:
                if fence is not None:
                    log.info("holding the lease with fence %d", fence)
                    return self._store.writer(fence)
                if not told:
                    log.info("another conductor holds the lease; standing by")
                    told = True
            time.sleep(min(1.0, self._seconds / 5))
        return None

    def lapsed(self, held: Held | None) -> Held | None:
        """`held`, the lease as it is now, where it has been the same for longer than it lasts; else none."""
        if held is None or held != self._seen:
            self._seen, self._since = held, self._now()
            return None
        return held if self._now() - self._since > held.seconds else None
