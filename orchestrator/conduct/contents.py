"""The content of the data that sweeps are planned with: nodes look at it anew before a sweep is expanded."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.conduct.availability import Availability
from orchestrator.plan.needs import agreed, needs
from orchestrator.record.reads.sweeps import QueuedSweep
from orchestrator.record.store import Store, Writer
from orchestrator.spec.spec import Spec
from workers.catalog import Catalog, Need

NODES_SECONDS: Final = 10.0
"""How long a sweep waits for a node that can look; then what was found last counts."""


@dataclass(frozen=True, slots=True)
class _Asked:
    needs: Sequence[Need]
    since: float


class DataContents:
    """Holds a queued sweep until the nodes have said what the files that it reads hold now.

    So what is reused was trained on the very files that are there. Where nodes differ, most of them decide, and the
    others are passed over; content that nobody could tell makes the trainings the sweep's own.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        catalog: Catalog,
        availability: Availability,
        *,
        inspects: bool,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._availability, self._inspects, self._now = availability, inspects, now
        self._asked: dict[int, _Asked] = {}
        self._decided: set[int] = set()

    def settled(self, queued: Sequence[QueuedSweep]) -> list[QueuedSweep]:
        """Those of the queued sweeps that can be expanded; nodes are asked about the others."""
        if not self._inspects:
            return [*queued]
        there = {one.id for one in queued}
        self._decided &= there
        self._asked = {sweep: asked for sweep, asked in self._asked.items() if sweep in there}
        for sweep in queued:
            if sweep.id not in self._decided and sweep.id not in self._asked:
                self._begin(sweep)
        if self._asked:
            self._ask()
            self._availability.look(anew=True)
            for sweep_id, asked in list(self._asked.items()):
                self._decide(sweep_id, asked)
            self._ask()
        return [one for one in queued if one.id in self._decided]

    def _ask(self) -> None:
        self._availability.ask((one, asked.since) for asked in self._asked.values() for one in asked.needs)

    def _begin(self, sweep: QueuedSweep) -> None:
        """Note what a sweep reads; one that reads nothing, or whose content is decided, can be expanded."""
        try:
            found = [one for one in needs(Spec.model_validate(sweep.spec), self._catalog) if _held(one)]
        except Exception:  # its expansion says what is wrong with it
            found = []
        silent = any(one.own and "root" in one.asks for one in self._catalog.entries)
        reads = bool(found) or silent
        if sweep.written or not reads or self._store.data.planned_content(sweep.id) is not None:
            self._decided.add(sweep.id)
        else:
            self._asked[sweep.id] = _Asked(found, self._now())

    def _decide(self, sweep_id: int, asked: _Asked) -> None:
        keys = {one.key for one in asked.needs}
        found = self._availability.seen_since(keys, asked.since)
        if found is None:
            return
        if keys and not found:
            if self._now() - asked.since < NODES_SECONDS:
                return
            found = self._store.data.findings()
        content = {key: one for key, one in agreed(found).items() if key in keys}
        self._writer.data.note_content(sweep_id, content)
        self._decided.add(sweep_id)
        del self._asked[sweep_id]


def _held(need: Need) -> bool:
    """Whether it names files of the data root."""
    return bool(need.dataset or need.files or need.weights)
