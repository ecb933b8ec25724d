"""What a client can ask for: submit, look, cancel, retry, export. Reads the store, appends requests, trains nothing."""

import hashlib
import uuid
from collections.abc import Iterable
from typing import Any

from orchestrator.cost.view import Cost
from orchestrator.host.private import own_folder
from orchestrator.plan import schema
from orchestrator.plan.missing_data import absences
from orchestrator.plan.unschedulable import crowded, shortages
from orchestrator.plan.validated import Checked, read
from orchestrator.publish import formats, paper
from orchestrator.publish.figures import drawing, rendering, training, vega
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.published import library
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.table_data import Numbers
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store
from orchestrator.record.writes.submissions import NewSweep
from orchestrator.service import offline
from orchestrator.service.bundling import Bundling
from orchestrator.service.commands import Requesting
from orchestrator.service.comparing import Comparing
from orchestrator.service.forecast import forecast
from orchestrator.service.lineage import Tracing
from orchestrator.service.outlook import MOST_TRIALS, Outlook
from orchestrator.settings import Settings
from orchestrator.views.data import DataFinding
from orchestrator.views.errors import NotFoundError, UnavailableError
from orchestrator.views.files import FigureFile, FigureView, Rendered
from orchestrator.views.health import Check, Readiness
from orchestrator.views.links import Links
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.pages import Page
from orchestrator.views.published import PublishedSummary, PublishedView
from orchestrator.views.submissions import Preview, Submitted
from orchestrator.views.sweeps import GridCell, SweepSummary, SweepView
from orchestrator.views.trials import Curve, LogView, TrialSummary, TrialView
from workers import catalog as catalogs
from workers.catalog import Catalog, unknown


class Service(Requesting, Tracing, Bundling, Comparing):
    """One object behind the routes and the pages; safe to share between threads."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._settings, self._store, self._catalog = settings, store, catalog
        self._outlook = Outlook(store, catalog)
        self._links = Links(settings.mlflow_pages)
        self._files = FigureFiles(store, settings.storage)
        self._sources = Sources(store.curves.of_trials, self._files.arrays_of)

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """The service over the settings' database, which is made or migrated if need be."""
        own_folder(settings.resolved_home)
        return cls(settings, Store.open(settings.database), catalogs.load(settings.parts))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def submit(
        self, body: bytes, idempotency_key: str | None = None, actor: str | None = None, priority: int = 0
    ) -> Submitted:
        """Queue the sweep that `body` specifies; nothing is stored for a refused spec."""
        checked = read(body, self._catalog, library.names())
        submitted = self._store.submissions.add_sweep(
            NewSweep(
                name=checked.spec.name,
                uid=str(uuid.uuid4()),
                text=body.decode("utf-8-sig"),
                spec=checked.spec.model_dump(mode="json"),
                total=checked.plan.trial_count,
                actor=actor,
                idempotency_key=idempotency_key,
                body_hash=hashlib.sha256(body).hexdigest(),
                priority=priority,
            )
        )
        told = {"warnings": self._warnings(checked), "notes": list(checked.notes)}
        if checked.plan.trial_count > MOST_TRIALS:
            return submitted.model_copy(update=told)
        return submitted.model_copy(update=told | {"cost": forecast(checked, self._store, self._catalog).cost})

    def preview(self, body: bytes) -> Preview:
        """What a spec would become, how much of it is known already, and what the rest would cost."""
        checked = read(body, self._catalog, library.names())
        return forecast(checked, self._store, self._catalog).model_copy(update={"warnings": self._warnings(checked)})

    def sweeps(self, state: str | None, name: str | None, cursor: str | None, limit: int) -> Page[SweepSummary]:
        """Sweeps, newest first; `name` is a part of the name."""
        return self._store.sweeps.page(state, name, cursor, limit)

    def sweep(self, sweep: int) -> SweepView:
        """One sweep whole."""
        found = self._store.sweeps.get(sweep)
        experiment = self._store.runs.experiment(sweep)
        return found.model_copy(update={"mlflow_url": self._links.to(experiment)})

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

    def cell_count(self, sweep: int) -> int:
        """How many cells a sweep has; none before it is expanded."""
        return self._store.sweeps.cell_count(sweep)

    def trials(
        self, sweep: int, state: str | None, cell: int | None, cursor: str | None, limit: int
    ) -> Page[TrialSummary]:
        """A sweep's trials in their order."""
        return self._store.trials.page(sweep, state, cell, cursor, limit)

    def trial(self, trial: int) -> TrialView:
        """One trial whole."""
        found = self._store.trials.get(trial)
        run = self._store.runs.run("trial", found.sweep, trial)
        link = self._links.to(self._store.runs.experiment(found.sweep), run) if run else None
        outdated = [str(one) for one in catalogs.changes(catalogs.stamp(found.recipe), self._catalog)]
        return found.model_copy(update={"mlflow_url": link, "outdated": outdated})

    def curves(self, trial: int) -> list[Curve]:
        """A trial's curves, one a metric."""
        return self._store.curves.of(trial)

    def curves_figure(self, trial: int) -> dict[str, Any]:
        """A trial's curves as a Vega-Lite figure."""
        return training.curves(self._store.curves.of(trial), f"Trial {trial}", self._catalog)

    def log(self, trial: int, offset: int = 0) -> LogView:
        """A trial's log from a character offset on."""
        return self._store.trials.log(trial, offset)

    def table(
        self,
        sweep: int,
        name: str,
        file_format: str,
        show_tuned: bool | None = None,
        numbers: Numbers = "own",
    ) -> Rendered:
        """A table of a sweep in one of the formats, computed from what is known now."""
        outcomes = self._outcomes(sweep, name)
        built = published_comparison.build(outcomes, name, self._catalog, show_tuned=show_tuned, numbers=numbers)
        return formats.render(self._addressed(built, here=False), file_format)

    def table_html(self, sweep: int, name: str) -> str:
        """A table as a fragment of HTML for our own pages, its numbers linked to what stands behind them."""
        built = published_comparison.build(self._outcomes(sweep, name), name, self._catalog)
        return formats.render(self._addressed(built, here=True), "html").content.decode()

    def figures(self, sweep: int) -> list[FigureView]:
        """The figures of a sweep."""
        found = self._store.sweeps.get(sweep)
        return drawing.listed(sweep, found.name, found.spec)

    def figure(self, sweep: int, name: str, file_format: str, heading: bool = True) -> Rendered:
        """A figure of a sweep in one of the formats, drawn from what is known now; `heading`: with its words."""
        outcomes = self._store.outcomes.of(sweep)
        return rendering.render(
            drawing.draw(outcomes, name, self._catalog, self._sources, heading=heading), file_format
        )

    def figure_files(self, trial: int) -> list[FigureFile]:
        """The files that a trial's training kept for figures."""
        return self._files.listed(trial)

    def figure_file(self, trial: int, name: str) -> Rendered:
        """One of these files."""
        return self._files.read(trial, name)

    def published(self) -> list[PublishedSummary]:
        """The papers' tables that own numbers can be compared with."""
        return offline.published_tables()

    def published_table(self, table_id: str) -> PublishedView:
        """One of the papers' tables with all its numbers."""
        return paper.view(library.load(table_id))

    def data(self) -> list[DataFinding]:
        """What the nodes' data roots have, as they were last seen."""
        return [
            DataFinding(
                host=one.host, node=one.node, data=str(one.need), state=one.finding.state, said=one.finding.said,
                looked=one.looked,
            )
            for one in self._store.data.findings()
        ]  # fmt: skip

    def catalog(self) -> Catalog:
        """The parts that exist."""
        return self._catalog

    def json_schema(self) -> dict[str, Any]:
        """The JSON schema of a spec."""
        return schema.json_schema(self._catalog)

    def vega(self) -> bytes:
        """The scripts that draw figures in a browser without a network."""
        return vega.bundle().encode()

    def ready(self) -> Readiness:
        """Whether the database answers and a conductor is alive."""
        checks = list(self._checks())
        return Readiness(ok=all(check.ok for check in checks), checks=checks)

    def _checks(self) -> Iterable[Check]:
        try:
            self._store.ping()
        except UnavailableError as error:
            yield Check(name="database", ok=False, detail=str(error))
            return
        yield Check(name="database", ok=True, detail="answers")
        alive = self._store.lease.conducted()
        yield Check(
            name="conductor",
            ok=alive,
            detail="holds the lease" if alive else "none holds the lease; start one with `metricsweep serve`",
        )

    def _warnings(self, checked: Checked) -> list[str]:
        """What would wait; where trainings run in the conductor's process, every slot is that."""
        inline = self._settings.engine == "inline"
        nodes = [] if inline else self._store.capacity.nodes()
        slots = [*shortages(checked.spec, nodes), *crowded(checked.spec, checked.plan.trial_count, nodes)]
        return slots + absences(checked.spec, self._catalog, self._store.data.findings())

    def _outcomes(self, sweep: int, name: str) -> SweepOutcomes:
        outcomes = self._store.outcomes.of(sweep)
        tables = outcomes.spec.get("tables", {})
        if name not in tables:
            raise NotFoundError(f"in sweep {sweep}: {unknown('table', name, tables)}")
        return outcomes
