"""From a number of a table to what stands behind it."""

from dataclasses import replace

from orchestrator.publish.tables import cell as cells
from orchestrator.publish.tables.table_data import Table
from orchestrator.record.store import Store
from orchestrator.settings import Settings
from orchestrator.views.cells import CellView
from orchestrator.views.links import Links
from workers.catalog import Catalog


class Tracing:
    """The part of the service that says where numbers come from."""

    _settings: Settings
    _store: Store
    _catalog: Catalog
    _links: Links

    def cell(self, sweep: int, index: int) -> CellView:
        """A cell of a sweep with its candidates, their trials and provenance; NotFoundError."""
        evidence = list(self._store.outcomes.provenance(sweep, index))
        found = cells.trace(self._store.outcomes.of(sweep), index, evidence, self._catalog)
        runs = {one.outcome.trial: one.run for one in evidence if one.run is not None}
        own = self._store.runs.run("cell", sweep, index)
        return cells.linked(found, self._links, self._store.runs.experiment(sweep), runs, own)

    def _addressed(self, table: Table, *, here: bool) -> Table:
        """The table with links from its cells: within our own pages, or, where this server's address is set, to it."""
        known = self._settings.address if self._settings.url else None
        return replace(table, address="" if here else known)
