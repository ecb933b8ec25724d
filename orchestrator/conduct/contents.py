"""The content of the data that sweeps are planned with: nodes look at it anew before a sweep is expanded."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from orchestrator.conduct.waiting import Availability
from orchestrator.plan import yaml
from orchestrator.plan.check import check
from orchestrator.plan.grid import agreed, counted, needs
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import QueuedSweep
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.operations import Inspected
from workers.catalog import Catalog, Need

CLIENT_SECONDS: Final = 30.0
"""How long ago a client may have wanted a look that is still made."""
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
        self._looks: dict[str, _Asked] = {}  # by key, what clients wait for
        self._heard: dict[str, datetime] = {}

    def settled(self, queued: Sequence[QueuedSweep]) -> list[QueuedSweep]:
        """Those of the queued sweeps that can be expanded; nodes are asked about the others."""
        if not self._inspects:
            return [*queued]
        self._hear_clients()
        there = {one.id for one in queued}
        self._decided &= there
        self._asked = {sweep: asked for sweep, asked in self._asked.items() if sweep in there}
        for sweep in queued:
            if sweep.id not in self._decided and sweep.id not in self._asked:
                self._begin(sweep)
        if self._asked or self._looks:
            self._ask()
            self._availability.look(anew=True)
            for sweep_id, asked in list(self._asked.items()):
                self._decide(sweep_id, asked)
            self._ask()
        return [one for one in queued if one.id in self._decided]

    def _hear_clients(self) -> None:
        """Note what clients want looked at before they submit."""
        for need, asked in self._store.data.asked_looks(datetime.now(UTC) - timedelta(seconds=CLIENT_SECONDS)):
            if self._heard.get(need.key) != asked:
                self._heard[need.key] = asked
                self._looks[need.key] = _Asked([need], self._now())
        gone = self._now() - CLIENT_SECONDS
        self._looks = {
            key: one
            for key, one in self._looks.items()
            if one.since > gone and not self._availability.seen_since([key], one.since)
        }

    def _ask(self) -> None:
        every = (*self._asked.values(), *self._looks.values())
        self._availability.ask((one, asked.since) for asked in every for one in asked.needs)

    def _begin(self, sweep: QueuedSweep) -> None:
        """Note what a sweep reads; one that reads nothing, or whose content is decided, can be expanded."""
        try:
            found = [one for one in needs(Spec.model_validate(sweep.spec), self._catalog) if one.held]
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
        if wrong := self._misfit(sweep_id, [one for one in found if one.need.key in keys]):
            self._writer.sweeps.fail(sweep_id, f"its data do not fit it: {wrong}")
            del self._asked[sweep_id]
            return
        content = {key: one for key, one in agreed(found).items() if key in keys}
        self._writer.data.note_content(sweep_id, content)
        self._decided.add(sweep_id)
        del self._asked[sweep_id]

    def _misfit(self, sweep_id: int, found: Sequence[Inspected]) -> str:
        """What of a sweep's spec the classes and images that nodes found do not allow; empty where all is well."""
        counts = counted(found)
        if not counts:
            return ""
        try:
            text = self._store.sweeps.get(sweep_id).text
            check(yaml.parse(text.encode()), self._catalog.counting(counts))
        except InvalidSpecError as error:
            return "; ".join(f"{one.path}: {one.message}" for one in error.problems)
        return ""
