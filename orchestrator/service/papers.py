"""The numbers of a table as macros for a paper."""

from orchestrator.publish import macros
from orchestrator.publish.macros import PREFIX, macros_of
from orchestrator.record.store import Store
from orchestrator.views.files import Rendered
from orchestrator.views.macros import MacroFormat, MacrosView
from workers.catalog import Catalog


class PaperQueries:
    """Gives papers their numbers."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def macros(self, sweep: int, table: str, prefix: str = PREFIX) -> MacrosView:
        """A table as macros. Raises NotFoundError for an unknown table, ConflictError for a prefix TeX cannot read."""
        uid = self._store.sweeps.get(sweep).uid
        return macros_of(self._store.outcomes.of(sweep), uid, table, self._catalog, prefix)

    def render(self, sweep: int, table: str, file_format: MacroFormat, prefix: str = PREFIX) -> Rendered:
        """The same as a file of LaTeX or JSON."""
        view = self.macros(sweep, table, prefix)
        stem = f"sweep-{sweep}-macros"
        if file_format == "latex":
            text = macros.written(view)
            return Rendered(content=text.encode(), media_type="application/x-tex", filename=f"{stem}.tex")
        text = view.model_dump_json(indent=2) + "\n"
        return Rendered(content=text.encode(), media_type="application/json", filename=f"{stem}.json")
