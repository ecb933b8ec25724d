"""Ledgers of the papers over all sweeps, or over bundles."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from orchestrator.host.cache import Cache
from orchestrator.publish import ledger, ledger_files
from orchestrator.publish.bundle import rebuilding
from orchestrator.publish.ledger import WITHIN, LedgerFinding, findings, published_tables
from orchestrator.record.store import Store
from orchestrator.views.errors import NotFoundError, timely
from orchestrator.views.evidence import LedgerSummary, LedgerView
from orchestrator.views.pages import Rendered
from workers.catalog import Catalog

MOST_SWEEPS: Final = 10_000
"""The newest sweeps that are looked through."""
MOST_KEPT: Final = 256
"""Sweeps whose findings are remembered."""


class LedgerQueries:
    """Makes ledgers; what a sweep says is computed anew only when a trial of it has begun or ended since."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog
        self._kept: Cache[tuple[int, float], list[LedgerFinding]] = Cache(MOST_KEPT)

    def summaries(self) -> list[LedgerSummary]:
        """Every paper with how many of its numbers stand how."""
        found = list(self._findings(WITHIN))
        return [ledger.summary(ledger.ledger(paper, found, WITHIN)) for paper in ledger.papers()]

    def of(self, paper: str, within: float = WITHIN) -> LedgerView:
        """The ledger of a paper; NotFoundError with a near miss."""
        return ledger.ledger(ledger.known_paper(paper), self._findings(within), within)

    def render(self, paper: str, file_format: str, within: float = WITHIN) -> Rendered:
        """The same as a file; NotFoundError where there is no such paper or format."""
        return ledger_files.render(self.of(paper, within), file_format)

    def _findings(self, within: float) -> Iterator[LedgerFinding]:
        for use, spec in timely(self._store.sweeps.specs(MOST_SWEEPS)):
            if published_tables(spec):
                with suppress(NotFoundError):  # it was deleted meanwhile
                    yield from self._of_sweep(use.id, within)

    def _of_sweep(self, sweep: int, within: float) -> list[LedgerFinding]:
        stamp = self._store.sweeps.change(sweep)
        return self._kept.stamped(
            (sweep, within), stamp, lambda: findings(self._store.outcomes.of(sweep), self._catalog, within)
        )


def from_bundles(bundles: Sequence[Path], paper: str, file_format: str, within: float = WITHIN) -> Rendered:
    """The ledger of a paper from bundles alone, asking no server; raises DamagedError and NotFoundError."""
    name = ledger.known_paper(paper)
    return ledger_files.render(ledger.ledger(name, _packed(bundles, within), within), file_format)


def _packed(bundles: Iterable[Path], within: float) -> Iterator[LedgerFinding]:
    for file in bundles:
        with file.open("rb") as source:
            packed = rebuilding.unpacked(source)
        yield from findings(packed.outcomes, packed.catalog, within)
