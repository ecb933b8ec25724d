"""The store: everything that reads or writes the database, opened from one URL, by noun."""

import sqlalchemy as sa

from orchestrator.record.account_admin import AccountWriter, LoginWriter, QuotaWriter
from orchestrator.record.accounts import AccountReader, AuditReader, AuditWriter, DirectoryReader
from orchestrator.record.attempts import ArtifactReader, CurveReader, LogReader
from orchestrator.record.capacity import CapacityReader, CapacityWriter, DataReader, DataWriter, QuotaReader
from orchestrator.record.changes import ChangeReader, ChangeWriter, DeliveryReader, DeliveryWriter
from orchestrator.record.claims import ClaimWriter
from orchestrator.record.cluster import ClusterReader, GaugeReader
from orchestrator.record.database import Database, FencedDatabase
from orchestrator.record.lease import Lease, LeaseWriter
from orchestrator.record.listings import ListingReader, PlotReader, Remarks
from orchestrator.record.migrations import difference, refuse_newer
from orchestrator.record.migrations import migrate as upgrade
from orchestrator.record.mirror_runs import MirrorStateReader, RunReader
from orchestrator.record.outbox import OutboxReader, OutboxWriter
from orchestrator.record.outcomes import OutcomeReader
from orchestrator.record.page_check import PageCheck
from orchestrator.record.queue import ClaimReader
from orchestrator.record.renewal import TrainingWriter
from orchestrator.record.requests import RequestReader, RequestWriter, Submissions
from orchestrator.record.resolutions import ResolutionReader, ResolutionWriter
from orchestrator.record.retention import CollectionReader, CollectionWriter, SizeReader
from orchestrator.record.searches import PruningReader, SearchReader, SearchWriter
from orchestrator.record.sweeps import SweepReader, SweepWriter
from orchestrator.record.trainings import TrainingReader
from orchestrator.record.transitions import EventWriter, PruningWriter, TrialWriter
from orchestrator.record.trials import ExpansionReader, NeighbourReader, TrialReader
from orchestrator.settings import Secrets, Settings


class Store:
    """What everyone may do: read, append sweeps and requests, take the lease. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.submissions = Submissions(database)
        self.accounts, self.owner = AccountReader(database), AccountWriter(database)
        self.logins, self.directory = LoginWriter(database), DirectoryReader(database)
        self.audit, self.audited = AuditReader(database), AuditWriter(database)
        self.quotas, self.owner_quotas = QuotaReader(database), QuotaWriter(database)
        self.neighbours = NeighbourReader(database)
        self.sweeps = SweepReader(database)
        self.expansion = ExpansionReader(database)
        self.trials = TrialReader(database)
        self.listings = ListingReader(database)
        self.remarks = Remarks(database)
        self.plots = PlotReader(database)
        self.trainings = TrainingReader(database)
        self.outcomes = OutcomeReader(database)
        self.curves = CurveReader(database)
        self.logs = LogReader(database)
        self.artifacts = ArtifactReader(database)
        self.requests = RequestReader(database)
        self.resolutions = ResolutionReader(database)
        self.changes = ChangeReader(database)
        self.lease = Lease(database)
        self.claims = ClaimReader(database)
        self.searches = SearchReader(database)
        self.pruning = PruningReader(database)
        self.capacity = CapacityReader(database)
        self.data = DataReader(database)
        self.cluster = ClusterReader(database)
        self.collection = CollectionReader(database)
        self.sizes = SizeReader(database)
        self.gauges = GaugeReader(database)
        self.runs = RunReader(database)
        self.outbox = OutboxReader(database)
        self.mirror_states = MirrorStateReader(database)
        self.deliveries = DeliveryReader(database)
        self.pages = PageCheck(database)

    @classmethod
    def of(cls, settings: Settings, migrate: bool = True) -> "Store":
        """The store that the settings name; raises UnavailableError, and MetricsweepError of its password's file.

        A newer release's database is refused, whether or not an older one's is brought along.
        """
        return cls._opened(Database(settings.database, lambda: Secrets(settings).database_password), migrate)

    @classmethod
    def open(cls, url: str, migrate: bool = True) -> "Store":
        """The store at a SQLAlchemy URL, brought to this version's schema; raises UnavailableError."""
        return cls._opened(Database(url), migrate)

    @classmethod
    def _opened(cls, database: Database, migrate: bool) -> "Store":
        try:
            with database.writing() if migrate else database.reading() as connection:
                (upgrade if migrate else refuse_newer)(connection)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def writer(self, fence: int) -> "Writer":
        """What the holder of the lease writes with, for as long as the lease carries this fence."""
        return Writer(self.database, fence)

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def ping(self) -> None:
        """Raise UnavailableError unless the database answers."""
        with self.database.reading() as connection:
            connection.execute(sa.select(1)).one()

    def behind(self) -> str | None:
        """What the database's schema is, where it is not this version's; none: it is. Raises UnavailableError."""
        with self.database.reading() as connection:
            return difference(connection)


class Writer:
    """What the conductor alone may do. Each write is guarded in its own transaction; a former one's: FencedError."""

    def __init__(self, database: Database, fence: int) -> None:
        fenced = FencedDatabase(database, fence)
        self.lease = LeaseWriter(database, fenced)
        self.sweeps = SweepWriter(fenced)
        self.trials = TrialWriter(fenced)
        self.trainings = TrainingWriter(fenced)
        self.requests = RequestWriter(fenced)
        self.resolutions = ResolutionWriter(fenced)
        self.claims = ClaimWriter(fenced)
        self.changes = ChangeWriter(fenced)
        self.events = EventWriter(fenced)
        self.searches = SearchWriter(fenced)
        self.pruning = PruningWriter(fenced)
        self.capacity = CapacityWriter(fenced)
        self.data = DataWriter(fenced)
        self.collection = CollectionWriter(fenced)
        self.outbox = OutboxWriter(fenced)
        self.deliveries = DeliveryWriter(fenced)
