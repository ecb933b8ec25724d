"""Settles what has ended: gives each cell its summary, and each sweep its last state."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from orchestrator.publish import select
from orchestrator.record.store import Store, Writer
from orchestrator.views import runs
from orchestrator.views.errors import FOR_ALL, MetricsweepError
from workers.catalog import Catalog

log = logging.getLogger(__name__)

MOST_CELLS: Final = 100
"""Cells whose outcomes are read at once, so that memory does not grow with what ended meanwhile."""
SHARE: Final = 0.05
"""Of the conductor's time that looking for ended cells may take: a look at ten thousand of them takes a while."""


class Finalization:
    """Looks for ended cells and sweeps, not at every turn where many cells are unsettled."""

    def __init__(
        self, store: Store, writer: Writer, catalog: Catalog, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._writer, self._catalog, self._now = store, writer, catalog, now
        self._rests_until = float("-inf")
        self._broken: dict[int, str] = {}  # why the cells of a sweep cannot be summed up

    def settle(self, *, force: bool = False) -> Iterable[runs.CellSettled | runs.SweepSettled]:
        """What has ended, each to be recorded before the next is asked for; nothing while it rests, unless forced.

        A sweep whose cells cannot be summed up fails once its trials have ended. Raises FencedError.
        """
        began = self._now()
        if began < self._rests_until and not force:
            return
        due = self._store.sweeps.cells_to_settle()
        self._rests_until = self._now() + (self._now() - began) / SHARE
        ended: dict[int, list[int]] = {}
        for sweep, cell in due:
            ended.setdefault(sweep, []).append(cell)
        for sweep, cells in ended.items():
            yield from self._summed(sweep, cells)
        for sweep in self._writer.sweeps.unsettled():
            if sweep in self._broken:
                self._writer.sweeps.fail(sweep, f"its cells cannot be summed up: {self._broken[sweep]}")
            else:
                yield runs.SweepSettled(sweep)

    def _summed(self, sweep: int, cells: list[int]) -> Iterable[runs.CellSettled]:
        try:
            for first in range(0, len(cells), MOST_CELLS):
                yield from self._cells(sweep, cells[first : first + MOST_CELLS])
            self._broken.pop(sweep, None)
        except FOR_ALL:
            raise
        except Exception as error:  # such as a metric that the catalog has no more: the trouble of this sweep alone
            said = f"{type(error).__name__}: {error}" if not isinstance(error, MetricsweepError) else str(error)
            if self._broken.get(sweep) != said:
                log.exception("sweep %d: its cells cannot be summed up", sweep)
            self._broken[sweep] = said

    def _cells(self, sweep: int, cells: list[int]) -> Iterable[runs.CellSettled]:
        outcomes = self._store.outcomes.of(sweep, cells)
        better = select.direction(select.selection(outcomes.spec).metric, self._catalog)
        for summary in select.summaries(outcomes, better):
            yield runs.CellSettled(sweep, summary)
