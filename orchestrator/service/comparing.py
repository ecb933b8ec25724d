"""One table from several sweeps."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

from orchestrator.publish import formats
from orchestrator.publish.tables import contrast, merge
from orchestrator.publish.tables.table_data import Table
from orchestrator.record.store import Store
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.files import Rendered
from workers.catalog import Catalog, unknown

View = Literal["merge", "difference"]


class Comparing(ABC):
    """The part of the service that looks at several sweeps at once."""

    _store: Store
    _catalog: Catalog

    @abstractmethod
    def _addressed(self, table: Table, *, here: bool) -> Table: ...

    def compare(self, sweeps: Sequence[int], name: str | None, view: View, file_format: str) -> Rendered:
        """A table of the first sweep's spec (its first one by default) over the cells of all of them.

        NotFoundError where a sweep or the table is not there, ConflictError where they do not compare.
        """
        if not 2 <= len(sweeps) <= (2 if view == "difference" else merge.MOST):
            most = "two" if view == "difference" else f"2 to {merge.MOST}"
            raise ConflictError(f"the view {view} compares {most} sweeps, not {len(sweeps)}")
        several = [self._store.outcomes.of(sweep) for sweep in sweeps]
        tables = several[0].spec.get("tables") or {}
        chosen = name if name is not None else next(iter(tables), "")
        if chosen not in tables:
            raise NotFoundError(f"in sweep {sweeps[0]}: {unknown('table', chosen, tables)}")
        if view == "difference":
            built = contrast.table(several[0], several[1], chosen, self._catalog)
        else:
            built = merge.table(several, chosen, self._catalog)
        rendered = formats.render(self._addressed(built, here=False), file_format)
        suffix = rendered.filename.rpartition(".")[2]
        stem = "-".join(("compare", *map(str, sweeps), chosen, view))
        return rendered.model_copy(update={"filename": f"{stem}.{suffix}"})
