"""The pace of Tune's loop, which looks around ten times a second, whether anything can have happened or not."""

import contextlib
import time
from typing import Any, Final

STIRRED_SECONDS: Final = 2.0
"""After a trial was added or ended the next may come at any moment: for so long the loop keeps Tune's own pace."""
QUIET_SECONDS: Final = 1.0
"""How long it waits for an event at other times, and what is no event, such as a new assignment, waits at most."""


class TunePace:
    """Has Tune's loop wait longer while no trial begins or ends; an event, such as a result, ends each wait.

    Tune has no setting for it (Ray 2.60, `TuneController.step`). Another Ray may go on as fast as it likes.
    """

    def __init__(self) -> None:
        self._stirred = time.monotonic()
        self._set = False

    def stir(self, tune_controller: Any) -> None:
        """A trial was added, or has ended."""
        self._stirred = time.monotonic()
        if not self._set:
            self._set = True
            with contextlib.suppress(AttributeError):
                self._slow(tune_controller._actor_manager)

    def _slow(self, events: Any) -> None:
        following = events.next

        def awaited(timeout: float | None = None) -> Any:
            quiet = timeout is not None and time.monotonic() - self._stirred > STIRRED_SECONDS
            return following(timeout=QUIET_SECONDS if quiet else timeout)

        events.next = awaited
