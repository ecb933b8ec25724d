"""Numbers of a table for a paper: macros, where they are from, and the checklist."""

from orchestrator.publish.macros import macro_file
from orchestrator.publish.macros.checklist import checklist
from orchestrator.publish.macros.macro_name import PREFIX
from orchestrator.publish.macros.macros import MacroTable, macros, sources
from orchestrator.publish.macros.provenance_page import provenance_page
from orchestrator.record.store import Store
from orchestrator.views.files import Rendered
from orchestrator.views.macros import ChecklistView, MacroFormat, MacrosView
from workers.catalog import Catalog


class PaperQueries:
    """Gives papers their numbers."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog

    def macros(self, sweep: int, table: str, prefix: str = PREFIX) -> MacrosView:
        """A table as macros; NotFoundError where there is none, ConflictError for a prefix that TeX cannot read."""
        return self._table(sweep, table, prefix).view

    def render(self, sweep: int, table: str, file_format: MacroFormat, prefix: str = PREFIX) -> Rendered:
        """The same as a file of LaTeX, as JSON, or as the page that says where each number is from."""
        built = self._table(sweep, table, prefix)
        stem = f"sweep-{sweep}-macros"
        if file_format == "latex":
            text = macro_file.written(built.view)
            return Rendered(content=text.encode("ascii"), media_type="application/x-tex", filename=f"{stem}.tex")
        if file_format == "json":
            text = built.view.model_dump_json(indent=2) + "\n"
            return Rendered(content=text.encode(), media_type="application/json", filename=f"{stem}.json")
        behind = sources(built, self._store.outcomes.provenance(sweep))
        text = provenance_page(built.view, behind, self.checklist(sweep))
        return Rendered(content=text.encode(), media_type="text/html; charset=utf-8", filename=f"{stem}.html")

    def checklist(self, sweep: int) -> ChecklistView:
        """Answers to a reproducibility checklist; NotFoundError."""
        return checklist(self._store.outcomes.of(sweep), self._store.outcomes.provenance(sweep))

    def _table(self, sweep: int, table: str, prefix: str) -> MacroTable:
        uid = self._store.sweeps.get(sweep).uid
        return macros(self._store.outcomes.of(sweep), uid, table, self._catalog, prefix)
