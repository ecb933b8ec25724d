"""What changes of one sweep, as the server's event stream tells it: whoever watches asks only when there is news."""

import threading
import time
from typing import Final

from api.connection import ServerConnection
from api.failures import ApiError, Unreachable

IDLE_SECONDS: Final = 15.0
"""Between two looks at a sweep of which nothing is told: the time that is left goes on."""
SILENT_SECONDS: Final = 60.0
"""A stream says something every quarter of a minute; one that was silent for so long is gone."""
AGAIN_SECONDS: Final = 3.0
REFUSED_SECONDS: Final = 60.0
"""After a refusal: there are as many streams as there may be, or the server is older and has none."""


class SweepChanges:
    """Listens in a thread while it is entered, from the last event that it heard on; without a stream all is news."""

    def __init__(self, connection: ServerConnection, sweep: int) -> None:
        self._connection, self._path = connection, f"/v1/sweeps/{sweep}/events"
        self._last = ""  # the id of the last event
        self._live, self._told = False, True
        self._looked = float("-inf")
        self._end = threading.Event()

    def __enter__(self) -> "SweepChanges":
        threading.Thread(target=self._listen, name="events", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()  # the thread ends with the next thing that it hears

    @property
    def live(self) -> bool:
        """Whether the server tells what changes, so that looking often costs it nothing."""
        return self._live

    def due(self) -> bool:
        """Whether to look at the sweep now: something was told since the last time, or nothing can be told."""
        now = time.monotonic()
        if self._live and not self._told and now - self._looked < IDLE_SECONDS:
            return False
        self._told, self._looked = False, now  # before the look, so that what changes meanwhile is news again
        return True

    def _listen(self) -> None:
        try:
            while not self._end.is_set():
                pause = AGAIN_SECONDS
                try:
                    self._hear()
                except ApiError:
                    pause = REFUSED_SECONDS
                except Unreachable:
                    pass
                self._live = False
                self._end.wait(pause)
        finally:
            self._live = False
            self._connection.close()

    def _hear(self) -> None:
        headers = {"Last-Event-ID": self._last} if self._last else {}
        with self._connection.streamed(self._path, SILENT_SECONDS, patient=False, headers=headers) as pieces:
            rest = b""
            for piece in pieces:
                if self._end.is_set():
                    return
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    self._note(event)

    def _note(self, event: bytes) -> None:
        """Whatever it is about: `hello` may follow on what was missed, and `reset` does. A comment is no event."""
        for line in event.splitlines():
            if line.startswith(b"id:"):
                self._last = line[3:].strip().decode("ascii", "replace")
                self._told = self._live = True
