"""The recorder: writes every event to the database, and from there, when it can, to the tracker."""

from orchestrator.record.mirror import Exhibits, Mirror, nothing
from orchestrator.record.store import Store, Writer
from orchestrator.record.tracker import Tracker
from orchestrator.views.events import Event


class Recorder:
    """One conductor's pen."""

    def __init__(
        self, store: Store, writer: Writer, tracker: Tracker | None, exhibits: Exhibits = nothing, url: str = ""
    ) -> None:
        self._store, self._writer = store, writer
        self._mirror = None if tracker is None else Mirror(store, writer, tracker, exhibits, url)

    def record(self, event: Event) -> None:
        """Write an event to the database, and a mark for the tracker with it; raises FencedError."""
        self._writer.events.write(event)

    def forward(self, limit: int = 100) -> int:
        """Tell the tracker of at most `limit` changed runs; 0 when there is no tracker. May run in its own thread."""
        return 0 if self._mirror is None else self._mirror.forward(limit)

    def left(self) -> int:
        """How many runs the tracker is still to be told of; 0 when there is no tracker."""
        return 0 if self._mirror is None else self._store.outbox.lag()
