"""Determines the data hashes that sweeps are planned with: nodes inspect the data before trials are written."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from orchestrator.conduct.waiting import Availability
from orchestrator.plan.check import check
from orchestrator.plan.grid import agreed, counted, needs
from orchestrator.plan.read import spec_document
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import QueuedSweep
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import InvalidSpecError
from orchestrator.views.operations import Inspected
from workers.catalog import Catalog, Need

_CLIENT_SECONDS: Final = 30.0
"""How long an inspection is attempted that a client asked for."""
_NODES_SECONDS: Final = 10.0
"""How long a sweep waits for a node that can inspect its data; then the latest findings count."""


@dataclass(frozen=True, slots=True)
class _Inspection:
    needs: Sequence[Need]
    since: float


class DataContents:
    """Holds a queued sweep until the nodes have inspected the files that it reads.

    A reused training was then trained on the files that are there now. Where nodes differ, the majority decides, and
    the other nodes are not used. Trainings of unknown content are not shared with other sweeps.
    """

    def __init__(
        self, store: Store, writer: Writer, catalog: Catalog, availability: Availability, *, inspects: bool
    ) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._availability, self._inspects = availability, inspects
        self._inspections: dict[int, _Inspection] = {}
        self._decided: set[int] = set()
        self._looks: dict[tuple[str, datetime], _Inspection] = {}  # by key and time of a client's request

    def settled(self, queued: Sequence[QueuedSweep]) -> list[QueuedSweep]:
        """The queued sweeps whose data is inspected; for the others, nodes are asked to inspect their data."""
        if not self._inspects:
            return [*queued]
        looks = self._unanswered()
        present = {sweep.id for sweep in queued}
        self._decided &= present
        self._inspections = {sweep: inspection for sweep, inspection in self._inspections.items() if sweep in present}
        for sweep in queued:
            if sweep.id not in self._decided and sweep.id not in self._inspections:
                self._begin(sweep)
        self._ask(looks)
        if self._inspections or looks:
            self._availability.update(trials_changed=True)
            for sweep_id, inspection in list(self._inspections.items()):
                self._decide(sweep_id, inspection)
            self._ask(looks)
        return [sweep for sweep in queued if sweep.id in self._decided]

    def _unanswered(self) -> list[_Inspection]:
        """The inspections that clients asked for before they submit, and that a machine has yet to make."""
        after, known, self._looks = datetime.now(UTC) - timedelta(seconds=_CLIENT_SECONDS), self._looks, {}
        for need, at in self._store.data.requested_inspections(after):
            self._looks[need.key, at] = known.get((need.key, at)) or _Inspection([need], time.monotonic())
        seen_since = self._availability.seen_since
        return [look for (key, _), look in self._looks.items() if not seen_since([key], look.since)]

    def _ask(self, looks: Sequence[_Inspection]) -> None:
        every = (*self._inspections.values(), *looks)
        self._availability.request_inspections(
            (need, inspection.since) for inspection in every for need in inspection.needs
        )

    def _begin(self, sweep: QueuedSweep) -> None:
        """Find what a sweep reads; it can be expanded if it reads nothing or its content is decided."""
        try:
            found = [need for need in needs(Spec.model_validate(sweep.spec), self._catalog) if need.reads_data]
        except Exception:  # the expansion reports what is wrong with it
            found = []
        undeclared = any(entry.own and "root" in entry.inputs for entry in self._catalog.entries)
        if sweep.written or not (found or undeclared) or self._store.data.planned_content(sweep.id) is not None:
            self._decided.add(sweep.id)
        else:
            self._inspections[sweep.id] = _Inspection(found, time.monotonic())

    def _decide(self, sweep_id: int, inspection: _Inspection) -> None:
        keys = {need.key for need in inspection.needs}
        found = self._availability.seen_since(keys, inspection.since)
        if found is None:
            return
        if keys and not found:
            if time.monotonic() - inspection.since < _NODES_SECONDS:
                return
            found = self._store.data.findings()
        if wrong := self._misfit(sweep_id, [finding for finding in found if finding.need.key in keys]):
            self._writer.sweeps.fail(sweep_id, f"its data do not fit it: {wrong}")
        else:
            content = {key: hashes for key, hashes in agreed(found).items() if key in keys}
            self._writer.data.note_content(sweep_id, content)
            self._decided.add(sweep_id)
        del self._inspections[sweep_id]

    def _misfit(self, sweep_id: int, found: Sequence[Inspected]) -> str:
        """The problems of a sweep's spec with the classes and images that nodes found, or an empty text."""
        counts = counted(found)
        if not counts:
            return ""
        try:
            text = self._store.sweeps.get(sweep_id).text
            check(spec_document(text.encode()).value, self._catalog.counting(counts))
        except InvalidSpecError as error:
            return "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
        return ""
