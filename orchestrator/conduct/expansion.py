"""The expansion: the rows of queued sweeps, written piece by piece, so that nobody waits long for the database."""

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
from orchestrator.record.sweeps import QueuedSweep
from orchestrator.record.trials import TrialPlace
from orchestrator.spec.spec import Spec
from orchestrator.views.errors import FOR_ALL, ConflictError, MetricsweepError
from orchestrator.views.runs import Candidate, Cell, Labels, PlannedTrial
from workers.catalog import Catalog

log = logging.getLogger(__name__)

PIECE: Final = 1_000
"""Trials a transaction at most: a sixth of a second of writing."""
FEWEST: Final = 100
"""Trials a transaction on a machine that is slow or busy."""
SECONDS: Final = 0.25
"""How long a transaction shall take about, since nobody else can write meanwhile."""
TURN: Final = 5_000
"""Trials that are written before the conductor looks what else there is to do."""
BREATH_SECONDS: Final = 0.1
"""How long the database is left to others between two pieces: who waits for SQLite asks that often."""


@dataclass(frozen=True, slots=True)
class _Piece:
    cells: list[Cell]
    candidates: list[Candidate]
    trials: list[PlannedTrial]


@dataclass(slots=True)
class _Course:
    """How far the rows of a plan are written."""

    spec: Spec
    plan: Plan
    left: Iterator[PlannedTrial]
    cells: int = 0
    candidates: int = 0
    trials: int = 0
    ahead: list[PlannedTrial] = field(default_factory=list)

    def next(self, most: int) -> tuple[_Piece, bool]:
        """The rows that come next, of so many trials, and whether they are the last; the same until they are `done`."""
        if len(self.ahead) <= most:
            self.ahead += islice(self.left, most + 1 - len(self.ahead))
        cells, candidates = self.plan.cells, self.plan.candidates
        if len(self.ahead) <= most:
            return _Piece(cells[self.cells :], candidates[self.candidates :], self.ahead), True
        trials = self.ahead[:most]
        place = trials[-1].cell, trials[-1].candidate
        end = bisect_right(candidates, place, self.candidates, key=lambda one: (one.cell, one.index))
        return _Piece(cells[self.cells : place[0] + 1], candidates[self.candidates : end], trials), False

    def done(self, piece: _Piece) -> None:
        """Note that a piece is written."""
        self.cells += len(piece.cells)
        self.candidates += len(piece.candidates)
        self.trials += len(piece.trials)
        del self.ahead[: len(piece.trials)]


class Expansion:
    """Goes on where the rows end that are written, whoever wrote them."""

    def __init__(self, store: Store, writer: Writer, catalog: Catalog) -> None:
        self._store, self._writer, self._catalog = store, writer, catalog
        self._courses: dict[int, _Course] = {}
        self._written = float("-inf")  # when a piece was written after which others follow
        self._size = PIECE

    @property
    def under_way(self) -> bool:
        """Whether a sweep is written in part."""
        return bool(self._courses)

    def advance(self, queued: Sequence[QueuedSweep]) -> None:
        """Write the next pieces of the oldest sweep, and one of each other: small ones do not wait for large ones.

        With its last piece a sweep starts; one that cannot be expanded fails. Raises FencedError and UnavailableError.
        """
        for gone in self._courses.keys() - {one.id for one in queued}:
            del self._courses[gone]
        left = TURN
        for sweep in queued:
            with about(sweep=sweep.id), span("expand"):
                left -= self._contained(sweep, max(PIECE, left))

    def _contained(self, queued: QueuedSweep, most: int) -> int:
        try:
            return self._advance(queued, most)
        except FOR_ALL:
            self._courses.pop(queued.id, None)  # what was written is read again
            raise
        except Exception as error:  # whatever a spec is wrong in, others are expanded
            self._courses.pop(queued.id, None)
            log.exception("sweep %d cannot be expanded", queued.id)
            said = str(error) if isinstance(error, MetricsweepError) else f"{type(error).__name__}: {error}"
            self._writer.sweeps.fail(queued.id, f"cannot be expanded: {said}")
            return 0

    def _advance(self, queued: QueuedSweep, most: int) -> int:
        """Write so many trials at most; gives how many these were."""
        course = self._courses.get(queued.id)
        if course is None or course.trials != queued.written:
            course = self._course(queued)
        while (written := course.trials - queued.written) < most:
            piece, last = course.next(min(self._size, most - written))
            self._breathe()
            if last:
                self._start(queued.id, course, piece)
                return written + len(piece.trials)
            began = time.monotonic()
            self._writer.sweeps.prepare(queued.id, piece.cells, piece.candidates, piece.trials, course.spec.fresh)
            course.done(piece)
            self._courses[queued.id], self._written = course, time.monotonic()
            self._fit(self._written - began)
        return written

    def _fit(self, took: float) -> None:
        """Smaller pieces where one takes long, and larger ones again where it does not."""
        if took > 2 * SECONDS:
            self._size = max(min(FEWEST, PIECE), self._size // 2)
        elif took < SECONDS:
            self._size = min(PIECE, 2 * self._size)

    def _start(self, sweep: int, course: _Course, rest: _Piece) -> None:
        spec = course.spec
        self._writer.sweeps.start(sweep, rest.cells, rest.candidates, rest.trials, spec.slot, spec.fresh)
        self._courses.pop(sweep, None)

    def _breathe(self) -> None:
        left = self._written + BREATH_SECONDS - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _course(self, queued: QueuedSweep) -> _Course:
        """The plan of a sweep from its first trial on that has no row; raises ConflictError where others have one."""
        spec = Spec.model_validate(queued.spec)
        plan = grid.expand(spec, self._catalog, Contents.of(self._store.data.planned_content(queued.id)))
        left = plan.trials()
        course = _Course(spec, plan, left, trials=queued.written)
        if not queued.written:
            return course
        course.cells = _agreeing(self._store.expansion.cells(queued.id), (one.labels for one in plan.cells))
        candidates = (one.labels for one in plan.candidates)
        course.candidates = _agreeing(self._store.expansion.candidates(queued.id), candidates)
        last = next(islice(left, queued.written - 1, None), None)
        planned = last and TrialPlace(last.cell, last.candidate, last.repeat)
        if planned != self._store.expansion.last_place(queued.id):
            raise ConflictError(_OTHERS)
        log.info("sweep %d: %d trials were written before", queued.id, queued.written)
        return course


_OTHERS: Final = (
    "another release began to write its trials, and would have gone on otherwise than this one; submit it anew"
)


def _agreeing(written: Iterator[Labels], planned: Iterable[Labels]) -> int:
    """How many are written, each as it is planned; raises ConflictError where one is not."""
    count, wanted = 0, iter(planned)
    for labels in written:
        if labels != next(wanted, None):
            raise ConflictError(_OTHERS)
        count += 1
    return count
