"""Trials as clients see them: a page of them, one whole, its curves, its log and the files that it kept."""

from collections.abc import Sequence
from typing import Any

from orchestrator.publish import figures
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store
from orchestrator.views.files import FigureFile, Rendered
from orchestrator.views.links import Links
from orchestrator.views.neighbours import Neighbour
from orchestrator.views.pages import Page
from orchestrator.views.trials import Curve, LogView, TrialSummary, TrialView
from workers import catalog as catalogs
from workers.catalog import Catalog


class TrialQueries:
    """Answers about trials."""

    def __init__(self, store: Store, catalog: Catalog, links: Links, files: FigureFiles) -> None:
        self._store, self._catalog, self._links, self._files = store, catalog, links, files

    def page(
        self, sweep: int, state: str | None, cell: int | None, cursor: str | None, limit: int
    ) -> Page[TrialSummary]:
        """A sweep's trials in their order."""
        return self._store.trials.page(sweep, state, cell, cursor, limit)

    def get(self, trial: int) -> TrialView:
        """One trial whole."""
        found = self._store.trials.get(trial)
        run = self._store.runs.run("trial", found.sweep, trial)
        link = self._links.to(self._store.runs.experiment(found.sweep), run) if run else None
        outdated = [str(one) for one in catalogs.changes(catalogs.stamp(found.recipe), self._catalog)]
        collected = self._store.collection.of_trial(trial)
        said = self._store.remarks.of("trial", found.sweep, trial)
        told = {"mlflow_url": link, "outdated": outdated, "collected": collected, "remark": said}
        return found.model_copy(update=told)

    def curves(self, trial: int) -> list[Curve]:
        """A trial's curves, one a metric."""
        return self._store.curves.of(trial)

    def curves_figure(self, trial: int) -> dict[str, Any]:
        """A trial's curves as a Vega-Lite figure."""
        return figures.pages.curves(self._store.curves.of(trial), f"Trial {trial}", self._catalog)

    def neighbours(self, trial: int) -> list[Neighbour]:
        """The trials that a trial is compared with, and how their recipes differ."""
        return self._store.neighbours.of(trial)

    def kept(self, trial: int) -> tuple[str, Sequence[str]] | None:
        """The folder of the storage in which a finished training's files lie, and their names."""
        found = self._store.artifacts.of_trial(trial)
        return (found.folder, found.names) if found else None

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from a character offset on."""
        return self._store.logs.of(trial, offset)

    def files(self, trial: int) -> list[FigureFile]:
        """The files that a trial's training kept for figures."""
        return self._files.listed(trial)

    def file(self, trial: int, name: str) -> Rendered:
        """One of these files."""
        return self._files.read(trial, name)
