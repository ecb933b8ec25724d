"""The slots as the engine knows them, written down every few seconds for whoever watches the cluster."""

import time
from collections.abc import Callable
from typing import Final

from orchestrator.record.store import Writer
from orchestrator.run.engine import Engine

LOOK_SECONDS: Final = 5.0


class SlotWatch:
    """Writes nothing while there is no slot."""

    def __init__(self, writer: Writer, engine: Engine, now: Callable[[], float] = time.monotonic) -> None:
        self._writer, self._engine, self._now = writer, engine, now
        self._looked = float("-inf")
        self._empty = False

    def look(self) -> None:
        """Note the slots, where that is due; the first look forgets those of an earlier conductor."""
        if self._now() - self._looked < LOOK_SECONDS:
            return
        self._looked = self._now()
        slots = self._engine.slots()
        if slots or not self._empty:
            self._writer.capacity.note_slots(slots)
        self._empty = not slots
