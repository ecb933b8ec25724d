"""Frames of what is known now, as streams that hold a few hundred rows at a time."""

from collections.abc import Iterator
from typing import Final

from orchestrator.publish import frames
from orchestrator.publish.select import direction, selection
from orchestrator.record.store import Store
from orchestrator.views.sweeps import SweepSummary
from orchestrator.views.trials import Curve
from workers.catalog import Catalog

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"
_PAGE: Final = 200


class FrameQueries:
    """Makes frames; NotFoundError comes before the first piece."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def sweeps(self) -> Iterator[bytes]:
        """Every sweep, newest first."""
        return frames.sweeps(self._summaries())

    def trials(self, sweep: int) -> Iterator[bytes]:
        """A sweep's trials with labels, metrics, recipe and provenance."""
        return frames.trials(self._store.outcomes.of(sweep, trials=False), self._store.outcomes.provenance(sweep))

    def candidates(self, sweep: int) -> Iterator[bytes]:
        """A sweep's candidates with their means."""
        outcomes = self._store.outcomes.of(sweep)
        return frames.candidates(outcomes, direction(selection(outcomes.spec).metric, self._catalog))

    def curves(self, sweep: int, key: str | None = None) -> Iterator[bytes]:
        """The curves of a sweep's trials, all or one."""
        self._store.sweeps.get(sweep)
        return frames.curves(self._curves(sweep, key))

    def _curves(self, sweep: int, key: str | None) -> Iterator[tuple[int, list[Curve]]]:
        for one in self._store.outcomes.provenance(sweep):
            found = self._store.curves.of(one.outcome.trial)
            yield one.outcome.trial, [curve for curve in found if key in {None, curve.key}]

    def _summaries(self) -> Iterator[SweepSummary]:
        cursor: str | None = None
        while True:
            page = self._store.sweeps.page(None, None, cursor, _PAGE)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return
