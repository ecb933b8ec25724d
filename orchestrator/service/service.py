"""What a client can ask for: submit, look, cancel, retry, export. Reads the store, appends requests, trains nothing."""

from contextlib import suppress
from typing import Any

from orchestrator.host.files import own_folder
from orchestrator.plan import schema
from orchestrator.publish import figures, paper_tables, papers
from orchestrator.publish.figures.sketch import Sources
from orchestrator.publish.verdicts import judge
from orchestrator.record.figure_files import FigureFiles
from orchestrator.record.store import Store
from orchestrator.service import offline
from orchestrator.service.accounts import AccountQueries, People
from orchestrator.service.ledgers import LedgerQueries
from orchestrator.service.operations import Operations, Retention
from orchestrator.service.sweeps import RemarkQueries, ResolutionCommands, SpecSubmissions, SweepCommands, SweepQueries
from orchestrator.service.tables import BundleQueries, DriftQueries, FigureQueries, PaperQueries, TableQueries
from orchestrator.service.trials import CurveQueries, FrameQueries, ListingQueries, PlotQueries, TrialQueries
from orchestrator.settings import Settings
from orchestrator.views.evidence import PublishedSummary, PublishedView
from orchestrator.views.operations import DataFinding
from orchestrator.views.sweeps import Links
from workers import catalog as catalogs
from workers.catalog import Catalog


class Service:
    """What is behind the routes and the pages, by noun; safe to share between threads."""

    def __init__(self, settings: Settings, store: Store, catalog: Catalog) -> None:
        self._store, self._catalog = store, catalog
        links, files = Links(settings.mlflow_pages), FigureFiles(store, settings.storage)
        queries = judge.source(files.arrays_of)
        sources = Sources(store.curves.of_trials, files.arrays_of, files.pictures_of)
        self.accounts = AccountQueries(store)
        self.people = People(store, settings.oidc_issuer)
        self.submissions = SpecSubmissions(settings, store, catalog)
        self.commands = SweepCommands(settings, store, catalog)
        self.resolutions = ResolutionCommands(store, catalog, queries)
        self.sweeps = SweepQueries(store, catalog, links)
        self.changes = store.changes
        self.trials = TrialQueries(store, catalog, links, files)
        self.listings = ListingQueries(store)
        self.remarks = RemarkQueries(store)
        self.plots = PlotQueries(store, catalog, self.listings)
        self.tables = TableQueries(settings, store, catalog, queries)
        self.figures = FigureQueries(store, catalog, sources)
        self.frames = FrameQueries(store, catalog)
        self.curves = CurveQueries(store, catalog)
        self.papers = PaperQueries(store, catalog)
        self.drifts = DriftQueries(store, catalog)
        self.ledgers = LedgerQueries(store, catalog)
        self.bundles = BundleQueries(store, catalog, sources, files)
        self.operations = Operations(settings, store)
        self.retention = Retention(settings, store, catalog)

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """The service over the settings' database, which is made or migrated if need be."""
        own_folder(settings.resolved_home)
        return cls(settings, Store.of(settings), catalogs.LiveCatalog.at(settings.parts))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def published(self) -> list[PublishedSummary]:
        """The papers' tables that own numbers can be compared with."""
        return offline.published_tables()

    def published_table(self, table_id: str) -> PublishedView:
        """One of the papers' tables with all its numbers."""
        return paper_tables.view(papers.load(table_id))

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
        """The parts that exist now; a folder with a part that cannot be read stays as it was."""
        with suppress(catalogs.PartSourceError):
            self._catalog.refresh()
        return self._catalog

    def json_schema(self) -> dict[str, Any]:
        """The JSON schema of a spec."""
        return schema.json_schema(self.catalog())

    def vega(self) -> bytes:
        """The scripts that draw figures in a browser without a network."""
        return figures.rendering.bundle().encode()
