"""The threads beside a conductor: one keeps its lease, one mirrors to the tracker."""

import logging
import threading
from collections.abc import Callable

from orchestrator.views.errors import MetricsweepError

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
