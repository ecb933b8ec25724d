"""Writes the trials of queued sweeps in pieces, so that no other writer waits long for the database."""

import logging
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from orchestrator.host.logs import about
from orchestrator.host.tracing import span
from orchestrator.plan import grid
from orchestrator.plan.grid import Contents, Plan
from orchestrator.record.store import Store, Writer
from orchestrator.record.sweeps import PlanRows, QueuedSweep
from orchestrator.record.trials import TrialPlace
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FATAL, ConflictError, reason
from orchestrator.views.runs import Labels, PlannedTrial
from workers.catalog import Catalog

log = logging.getLogger(__name__)

PIECE: Final = 1_000
"""Most trials written in one transaction."""
_FEWEST: Final = 100
"""Trials in one transaction on a slow or busy machine."""
SECONDS: Final = 0.25
"""Roughly how long a transaction may take, since it blocks all other writes."""
TURN: Final = 5_000
"""Trials written before the conductor does its other work."""
BREATH_SECONDS: Final = 0.1
"""How long the database is free between two pieces: SQLite's waiting writers retry that often."""


@dataclass(slots=True)
class _Course:
    """A plan, and the position up to which its rows are written."""

    spec: Spec
    plan: Plan
    left: Iterator[PlannedTrial]
    cells: int = 0
    candidates: int = 0
    trials: int = 0
    ahead: list[PlannedTrial] = field(default_factory=list)

    def next(self, most: int) -> tuple[PlanRows, bool]:
        """The next rows, of at most so many trials, and whether they are the last; unchanged until `done` is called."""
        if len(self.ahead) <= most:
            self.ahead += islice(self.left, most + 1 - len(self.ahead))
        cells, candidates = self.plan.cells, self.plan.candidates
        if len(self.ahead) <= most:
            return PlanRows(cells[self.cells :], candidates[self.candidates :], self.ahead), True
        trials = self.ahead[:most]
        place = trials[-1].cell, trials[-1].candidate
        end = bisect_right(candidates, place, self.candidates, key=lambda candidate: (candidate.cell, candidate.index))
        return PlanRows(cells[self.cells : place[0] + 1], candidates[self.candidates : end], trials), False

    def done(self, piece: PlanRows) -> None:
        self.cells += len(piece.cells)
        self.candidates += len(piece.candidates)
        self.trials += len(piece.trials)
        del self.ahead[: len(piece.trials)]


class Expansion:
    """Writes the trials of queued sweeps, continuing after the last written trial, also of an earlier conductor."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._courses: dict[int, _Course] = {}
        self._written = float("-inf")  # when the last piece was written that was not the end of its sweep
        self._size = PIECE

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
                left -= self._contained(sweep, max(PIECE, left))

    def _contained(self, queued: QueuedSweep, most: int) -> int:
        try:
            return self._advance(queued, most)
        except FATAL:
            self._courses.pop(queued.id, None)  # read again what was written
            raise
        except Exception as error:  # a fault of one spec does not stop the others
            self._courses.pop(queued.id, None)
            log.exception("sweep %d cannot be expanded", queued.id)
            self._writer.sweeps.fail(queued.id, f"cannot be expanded: {reason(error)}")
            return 0

    def _advance(self, queued: QueuedSweep, most: int) -> int:
        """Write at most so many trials; returns how many were written."""
        course = self._courses.get(queued.id)
        if course is None or course.trials != queued.written:
            course = self._course(queued)
        spec = course.spec
        while (written := course.trials - queued.written) < most:
            piece, last = course.next(min(self._size, most - written))
            if (pause := self._written + BREATH_SECONDS - time.monotonic()) > 0:
                time.sleep(pause)
            if last:
                self._writer.sweeps.start(queued.id, piece, spec.slot, spec.fresh)
                self._courses.pop(queued.id, None)
                return written + len(piece.trials)
            began = time.monotonic()
            self._writer.sweeps.prepare(queued.id, piece, spec.fresh)
            course.done(piece)
            self._courses[queued.id], self._written = course, time.monotonic()
            self._fit(self._written - began)
        return written

    def _fit(self, took: float) -> None:
        """Make pieces smaller if they take long, and larger again if they do not."""
        if took > 2 * SECONDS:
            self._size = max(min(_FEWEST, PIECE), self._size // 2)
        elif took < SECONDS:
            self._size = min(PIECE, 2 * self._size)

    def _course(self, queued: QueuedSweep) -> _Course:
        """The plan of a sweep after its written rows; raises ConflictError if those rows are not of this plan."""
        spec = Spec.model_validate(queued.spec)
        plan = grid.expand(spec, self._catalog, Contents.of(self._store.data.planned_content(queued.id)))
        left = plan.trials()
        course = _Course(spec, plan, left, trials=queued.written)
        if not queued.written:
            return course
        course.cells = _agreeing(self._store.expansion.cells(queued.id), (cell.labels for cell in plan.cells))
        candidates = (candidate.labels for candidate in plan.candidates)
        course.candidates = _agreeing(self._store.expansion.candidates(queued.id), candidates)
        last = next(islice(left, queued.written - 1, None), None)
        planned = last and TrialPlace(last.cell, last.candidate, last.repeat)
        if planned != self._store.expansion.last_place(queued.id):
            raise ConflictError(_OTHERS)
        log.info("sweep %d: %d trials were written before", queued.id, queued.written)
        return course


_OTHERS: Final = (
    "another release began to write its trials, and would have continued differently from this one; submit it again"
)


def _agreeing(written: Iterator[Labels], planned: Iterable[Labels]) -> int:
    """The number of written labels; raises ConflictError if they differ from the planned labels."""
    count, expected = 0, iter(planned)
    for labels in written:
        if labels != next(expected, None):
            raise ConflictError(_OTHERS)
        count += 1
    return count
