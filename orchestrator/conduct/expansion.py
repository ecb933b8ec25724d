"""Writes the trials of queued sweeps in pieces, so that no other writer waits long for the database."""

import logging
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from orchestrator.host.logs import about
from orchestrator.host.tracing import span
from orchestrator.plan import grid
from orchestrator.plan.grid import Contents, Plan
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows, QueuedSweep
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FATAL, ConflictError, reason
from orchestrator.views.runs import PlannedTrial
from workers.catalog import Catalog

log = logging.getLogger(__name__)

PIECE: Final = 500
"""Most trials written in one transaction, which blocks all other writes."""
TURN: Final = 5_000
"""Trials written before the conductor does its other work."""
BREATH_SECONDS: Final = 0.1
"""How long the database is free after a piece: SQLite's waiting writers retry that often."""


@dataclass(slots=True)
class _Course:
    """A plan, and the position up to which its rows are written."""

    spec: Spec
    plan: Plan
    left: Iterator[PlannedTrial]
    cells: int = 0
    candidates: int = 0
    trials: int = 0

    def next(self, most: int) -> tuple[PlanRows, bool]:
        """The next rows, of at most so many trials, and whether they are the last."""
        trials = list(islice(self.left, most))
        self.trials += len(trials)
        last = len(trials) < most or self.trials == self.plan.trial_count
        cells, candidates = len(self.plan.cells), len(self.plan.candidates)
        if not last:
            place = trials[-1].cell, trials[-1].candidate
            cells = place[0] + 1
            candidates = bisect_right(self.plan.candidates, place, key=lambda other: (other.cell, other.index))
        rows = PlanRows(self.plan.cells[self.cells : cells], self.plan.candidates[self.candidates : candidates], trials)
        self.cells, self.candidates = cells, candidates
        return rows, last


class Expansion:
    """Writes the trials of queued sweeps, continuing after the last written trial, also of an earlier conductor."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._courses: dict[int, _Course] = {}

    @property
    def under_way(self) -> bool:
        """Whether a sweep's trials are partly written."""
        return bool(self._courses)

    def advance(self, queued: Sequence[QueuedSweep]) -> None:
        """Write pieces of the oldest sweep, and one piece of each other sweep, so that small sweeps do not wait.

        A sweep starts with its last piece, and fails if it cannot be expanded. Raises FencedError, UnavailableError.
        """
        for gone in self._courses.keys() - {sweep.id for sweep in queued}:
            del self._courses[gone]
        left = TURN
        for sweep in queued:
            with about(sweep=sweep.id), span("expand"):
                try:
                    left -= self._advance(sweep, max(PIECE, left))
                except Exception as error:  # a fault of one spec does not stop the others
                    self._courses.pop(sweep.id, None)  # read again what was written
                    if isinstance(error, FATAL):
                        raise
                    log.exception("sweep %d cannot be expanded", sweep.id)
                    self._writer.sweeps.fail(sweep.id, f"cannot be expanded: {reason(error)}")

    def _advance(self, queued: QueuedSweep, most: int) -> int:
        """Write at most so many trials; returns how many were written."""
        course = self._courses.get(queued.id)
        if course is None or course.trials != queued.written:
            course = self._courses[queued.id] = self._course(queued)
        while (written := course.trials - queued.written) < most:
            piece, last = course.next(min(PIECE, most - written))
            if last:
                self._writer.sweeps.start(queued.id, piece, course.spec.slot, course.spec.fresh)
                del self._courses[queued.id]
                return written + len(piece.trials)
            self._writer.sweeps.prepare(queued.id, piece, course.spec.fresh)
            time.sleep(BREATH_SECONDS)
        return written

    def _course(self, queued: QueuedSweep) -> _Course:
        """The plan of a sweep after its written rows; raises ConflictError if those rows are not of this plan."""
        spec = Spec.model_validate(queued.spec)
        plan = grid.expand(spec, self._catalog, Contents.of(self._store.data.planned_content(queued.id)))
        left = plan.trials()
        course = _Course(spec, plan, left, trials=queued.written)
        if not queued.written:
            return course
        written = self._store.expansion
        cells, candidates = list(written.cells(queued.id)), list(written.candidates(queued.id))
        course.cells, course.candidates = len(cells), len(candidates)
        last = next(islice(left, queued.written - 1, None), None)
        if (
            cells != [cell.labels for cell in plan.cells[: len(cells)]]
            or candidates != [candidate.labels for candidate in plan.candidates[: len(candidates)]]
            or written.last_place(queued.id) != (last and (last.cell, last.candidate, last.repeat))
        ):
            raise ConflictError(
                "another release began to write its trials, and would have continued differently from this one; "
                "submit it again"
            )
        log.info("sweep %d: %d trials were written before", queued.id, queued.written)
        return course
