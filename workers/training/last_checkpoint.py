"""The checkpoint from which an unfinished training goes on: written when it is time, and when asked to stop."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from workers.contract import Place, Stopped
from workers.training import checkpoint
from workers.training.progress_log import ProgressLog
from workers.training.session import Session

LAST: Final = "last.pt"
"""Its file."""


class LastCheckpoint:
    """Keeps the one checkpoint of a training at `place`; what it holds is what `state` gives."""

    def __init__(self, place: Place, journal: ProgressLog, state: Callable[[], Mapping[str, Any]]) -> None:
        self._place, self._journal, self._state = place, journal, state
        self._saved = time.monotonic()

    def stop(self, session: Session) -> None:
        """Raise Stopped when asked to stop, after a checkpoint if it can be written."""
        if self._place.stop():
            self._save(session)
            raise Stopped(f"stopped after {session.step} of {session.total} iterations")

    def keep(self, session: Session) -> None:
        """Write it where the last one is old enough."""
        if time.monotonic() - self._saved >= self._place.checkpoint_seconds:
            self._save(session)
            self._saved = time.monotonic()

    def _save(self, session: Session) -> None:
        """Write it, and say so once it is complete.

        One that cannot be written, on a full disk for one, ends no training: the checkpoint before it still stands, the
        next one may fit, and what is kept at the end is another file.
        """
        try:
            checkpoint.save(self._place.storage / LAST, self._state())
        except OSError as error:
            reason = f"{error.strerror or error} ({error.filename or LAST})"
            self._journal.tell(session.step, {}, f"no checkpoint at step {session.step}: {reason}; going on without")
        else:
            self._journal.tell(session.step, {}, checkpoint=LAST)
