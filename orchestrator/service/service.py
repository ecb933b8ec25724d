"""The service behind routes and pages. It reads the store and appends requests; it trains nothing."""

from contextlib import suppress
from typing import Any

from orchestrator.host.files import own_folder
from orchestrator.plan import schema
from orchestrator.publish import paper_tables, papers
from orchestrator.publish.figures import rendering
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.verdicts import judge
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store
from orchestrator.service.accounts import People
from orchestrator.service.operations import Operations, Retention
from orchestrator.service.sweeps import (
    AnnotationQueries,
    ResolutionCommands,
    SpecSubmissions,
    SweepCommands,
    SweepQueries,
)
from orchestrator.service.tables import BundleQueries, FigureQueries, ReproductionQueries, TableQueries
from orchestrator.service.trials import CurveQueries, FrameQueries, ListingQueries, TrialQueries
from orchestrator.settings import Settings
from orchestrator.views.accounts import caller
from orchestrator.views.evidence import PublishedView
from orchestrator.views.operations import DataFinding
from orchestrator.views.pages import Sections
from orchestrator.views.sweeps import Links
from workers import catalog as catalogs
from workers.catalog import Catalog


class Service:
    """What routes and pages call; they read `store` directly where nothing is joined. Safe to share between threads."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self.store, self._catalog = store, catalog
        self.files = files = FigureFiles(store, settings.storage)
        links = Links(settings.mlflow_pages)
        queries = judge.source(files.arrays_of)
        sources = Sources(store.curves.of_trials, files.arrays_of, files.pictures_of)
        self.people = People(store, settings.oidc_issuer)
        self.submissions = SpecSubmissions(settings, store, catalog)
        self.commands = SweepCommands(settings, store, catalog)
        self.resolutions = ResolutionCommands(store, catalog, queries)
        self.sweeps = SweepQueries(store, catalog, links)
        self.trials = TrialQueries(store, catalog, links, files.arrays_of)
        self.listings = ListingQueries(store, catalog)
        self.annotations = AnnotationQueries(store)
        self.tables = TableQueries(settings, store, catalog, queries)
        self.figures = FigureQueries(store, catalog, sources)
        self.frames = FrameQueries(store, catalog)
        self.curves = CurveQueries(store, catalog)
        self.reproductions = ReproductionQueries(store, catalog)
        self.bundles = BundleQueries(store, catalog, sources, files)
        self.operations = Operations(settings, store)
        self.retention = Retention(settings, store, catalog)

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """The service on the settings' database, which is created or migrated if necessary."""
        own_folder(settings.resolved_home)
        return cls(settings, Store.of(settings), catalogs.LiveCatalog.at(settings.parts, papers.check))

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def published_table(self, table_id: str) -> PublishedView:
        """One of the papers' tables with all its numbers."""
        return paper_tables.view(papers.load(table_id, self._catalog.published))

    def data(self) -> list[DataFinding]:
        """The state of data sets and weights on the nodes, as last inspected."""
        return [
            DataFinding(
                host=inspected.host, node=inspected.node, data=str(inspected.need), state=inspected.finding.state,
                message=inspected.finding.message, inspected_at=inspected.inspected_at,
            )
            for inspected in self.store.data.findings()
        ]  # fmt: skip

    def catalog(self) -> Catalog:
        """The current parts; a folder with an unreadable part keeps its former parts."""
        with suppress(catalogs.PartSourceError):
            self._catalog.refresh()
        return self._catalog

    def sections(self) -> Sections:
        """Which optional sections of the pages' navigation apply, for the caller."""
        if caller().is_visitor:
            return Sections()
        return Sections(reproduction=self.store.sweeps.reproduces(), people=self.store.accounts.any())

    def json_schema(self) -> dict[str, Any]:
        """The JSON schema of a spec."""
        return schema.json_schema(self.catalog())

    def vega(self) -> bytes:
        """The scripts that draw figures in a browser without a network."""
        return rendering.bundle().encode()
