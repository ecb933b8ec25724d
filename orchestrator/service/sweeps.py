"""Sweeps as clients see them: a page of them, one whole, its grid and its cells, with links to the tracker."""

from dataclasses import replace
from typing import Any

from orchestrator.cost.view import Cost
from orchestrator.publish import figures
from orchestrator.publish.tables import cell as cells
from orchestrator.record.store import Store
from orchestrator.service.naming import named
from orchestrator.service.outlook import Outlook
from orchestrator.views.callers import Allowed
from orchestrator.views.cells import CellView, ComparedCell
from orchestrator.views.links import Links
from orchestrator.views.mirror import MirrorView
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.pages import Page
from orchestrator.views.sweeps import GridCell, PartUse, SweepSummary, SweepView
from workers.catalog import Catalog


class SweepQueries:
    """Answers about sweeps."""

    def __init__(self, store: Store, catalog: Catalog, links: Links) -> None:
        self._store, self._catalog, self._links = store, catalog, links
        self._outlook = Outlook(store, catalog)

    def page(
        self, state: str | None, name: str | None, cursor: str | None, limit: int, tag: str | None = None
    ) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name, `tag` a whole tag of the sweep itself."""
        return self._store.sweeps.page(state, name, cursor, limit, tag and tag.strip())

    def get(self, sweep: int) -> SweepView:
        """One sweep whole."""
        found = self._store.sweeps.get(sweep)
        experiment = self._store.runs.experiment(sweep)
        said = self._store.remarks.of("sweep", sweep, sweep)
        return found.model_copy(update={"mlflow_url": self._links.to_view(experiment), "remark": said})

    def allowed(self, sweep: int) -> Allowed:
        """What who asks may do with a sweep: pages offer no more."""
        return self._store.accounts.allowed(sweep)

    def using(self, kind: str, name: str, newest: int) -> list[PartUse]:
        """Of the newest sweeps those whose specs name a part, the newest first."""
        return [use for use, spec in self._store.sweeps.specs(newest) if named(spec, kind, name)]

    def left(self, sweep: SweepView) -> Cost | None:
        """What is left to train of a sweep that goes on, at most a minute old; none where that is not known."""
        return self._outlook.left(sweep)

    def grid(self, sweep: int, most: int | None = None) -> list[GridCell]:
        """A sweep's trials by cell, candidate and repeat; with `most`, the first cells, up to so many trials."""
        experiment, runs = self._store.runs.experiment(sweep), self._store.runs.of_cells(sweep)
        return [
            cell.model_copy(update={"mlflow_url": self._links.to(experiment, runs.get(cell.index))})
            for cell in self._store.sweeps.grid(sweep, most)
        ]

    def mirror(self, sweep: int | None = None) -> MirrorView:
        """What MLflow is still to be told of a sweep, or of all; NotFoundError."""
        if sweep is not None:
            self._store.sweeps.get(sweep)
        return MirrorView(waiting=self._store.outbox.lag(sweep), error=self._store.outbox.error(sweep))

    def cell_count(self, sweep: int) -> int:
        """How many cells a sweep has; none before it is expanded."""
        return self._store.sweeps.cell_count(sweep)

    def cell_figure(self, cell: CellView) -> dict[str, Any] | None:
        """A cell's candidates by their scores, as a Vega-Lite figure; none where nothing competes."""
        return figures.pages.candidates_chart(cell)

    def compared(self, sweep: int, index: int) -> ComparedCell:
        """A cell of a sweep as it stands beside others; NotFoundError."""
        found, trial = cells.compared(self._store.outcomes.of(sweep, [index]), index, self._catalog)
        if trial is None:
            return found
        recipe = self._store.trials.get(trial.trial).recipe
        alike = {path: value for path, value in recipe.items() if path not in trial.repeat_labels}
        return found.model_copy(update={"recipe": alike})

    def cell(self, sweep: int, index: int) -> CellView:
        """A cell of a sweep with its candidates, their trials and provenance; NotFoundError."""
        evidence = list(self._store.outcomes.provenance(sweep, index))
        found = cells.trace(self._around(sweep, index), index, evidence, self._catalog)
        runs = {one.outcome.trial: one.run for one in evidence if one.run is not None}
        own = self._store.runs.run("cell", sweep, index)
        linked = cells.linked(found, self._links, self._store.runs.experiment(sweep), runs, own)
        return linked.model_copy(update={"remark": self._store.remarks.of("cell", sweep, index)})

    def _around(self, sweep: int, index: int) -> SweepOutcomes:
        """The outcomes of a cell and of those that decide on its numbers; without it all cells, and no outcomes."""
        own = self._store.outcomes.of(sweep, [index])
        if own.cells and cells.alone(own.spec, own.cells[0], self._catalog):
            return own
        among = self._store.outcomes.cells(sweep)
        if not own.cells:
            return replace(own, cells=among)
        wanted = cells.needed(own.spec, among, own.cells[0], self._catalog)
        return self._store.outcomes.of(sweep, None if len(wanted) == len(among) else wanted)
