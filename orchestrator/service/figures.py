"""Figures drawn from what is known now."""

from orchestrator.publish import figures
from orchestrator.publish.figures.sketch import Sources
from orchestrator.record.store import Store
from orchestrator.views.files import FigureView, Rendered
from workers.catalog import Catalog


class FigureQueries:
    """Draws figures."""

    def __init__(self, store: Store, catalog: Catalog, sources: Sources) -> None:
        self._store, self._catalog, self._sources = store, catalog, sources

    def listed(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        found = self._store.sweeps.get(sweep)
        return figures.drawing.listed(sweep, found.name, found.spec)

    def render(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure of a sweep in one of the formats, drawn from what is known now; `heading`: with its words."""
        outcomes = self._store.outcomes.of(sweep)
        return figures.rendering.render(
            figures.drawing.draw(outcomes, name, self._catalog, self._sources, heading=heading), file_format
        )
