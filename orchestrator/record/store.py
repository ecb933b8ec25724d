"""The store: all readers and writers of the database, by noun."""

import logging
import os
import sqlite3
import threading
import time
from contextlib import closing
from typing import Final
from urllib.parse import quote

import sqlalchemy as sa

from orchestrator.record.account_admin import AccountWriter, LoginWriter, Shares
from orchestrator.record.accounts import AccountReader, AuditLog, DirectoryReader
from orchestrator.record.attempts import ArtifactReader, CurveReader, LogReader
from orchestrator.record.capacity import CapacityReader, CapacityWriter, DataReader, DataWriter, QuotaReader
from orchestrator.record.changes import ChangeReader, ChangeWriter, DeliveryReader, DeliveryWriter
from orchestrator.record.cluster import ClusterReader, GaugeReader
from orchestrator.record.database import Database, FencedDatabase
from orchestrator.record.lease import Lease, LeaseWriter
from orchestrator.record.listings import Annotations, ListingReader, PlotReader
from orchestrator.record.migrations import difference, refuse_newer
from orchestrator.record.migrations import migrate as upgrade
from orchestrator.record.outbox import MirrorStateReader, OutboxReader, OutboxWriter, RunReader
from orchestrator.record.queue import ClaimReader, ClaimWriter
from orchestrator.record.renewal import TrainingWriter
from orchestrator.record.requests import RequestReader, RequestWriter, Submissions
from orchestrator.record.resolutions import ResolutionReader, ResolutionWriter
from orchestrator.record.retention import CollectionReader, CollectionWriter, SizeReader
from orchestrator.record.searches import PruningReader, SearchReader, SearchWriter
from orchestrator.record.sweeps import SweepReader, SweepWriter
from orchestrator.record.trainings import TrainingReader
from orchestrator.record.transitions import EventWriter, PruningWriter, TrialWriter
from orchestrator.record.trial_results import TrialResultReader
from orchestrator.record.trials import ExpansionReader, TrialReader
from orchestrator.settings import Secrets, Settings

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 600.0
"""How often pages are checked."""
_LONGEST_SECONDS: Final = 30.0
"""How long one check may take; the next check continues with the next table."""
_STEPS: Final = 10_000
"""Steps of SQLite's virtual machine between two looks at the clock."""
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
_CHECK: Final = "SELECT quick_check FROM pragma_quick_check(?)"


class PageCheck:
    """Checks regularly that the pages of a SQLite file are intact; safe to share between threads.

    Postgres checks its pages itself.
    """

    def __init__(self, database: Database) -> None:
        self._file = database.engine.url.database if database.sqlite else None
        self._lock = threading.Lock()
        self._due = float("-inf")
        self._damaged: set[str] = set()
        self._done = ""  # the last table of the check before, by name

    def damage(self) -> str | None:
        """The message that tables of the SQLite file are damaged, or `None`.

        Starts the next check, in its own thread, if that is due.
        """
        with self._lock:
            if self._file and time.monotonic() >= self._due:
                self._due = time.monotonic() + _CHECK_SECONDS
                threading.Thread(target=self._look, name="page check", daemon=True).start()
            if not self._damaged:
                return None
            noun = "table" if len(self._damaged) == 1 else "tables"
            return f"the database file is damaged ({noun} {', '.join(sorted(self._damaged))}); restore a backup"

    def _look(self) -> None:
        try:
            # Its own connection: another would answer from pages in memory.
            uri = f"file:{quote(os.path.abspath(self._file or ''))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=_LONGEST_SECONDS)) as connection:
                self._look_through(connection, time.monotonic() + _LONGEST_SECONDS)
        except sqlite3.Error as error:  # a missing file or a damaged first page, which other checks report
            log.warning("the database's pages cannot be looked at: %s", error)
        except Exception:
            log.exception("the database's pages cannot be looked at")

    def _look_through(self, connection: sqlite3.Connection, end: float) -> None:
        names = [str(name) for (name,) in connection.execute(_TABLES)]
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        later = [name for name in names if name > self._done]
        for name in [*later, *names[: len(names) - len(later)]]:
            if time.monotonic() > end:
                return
            self._done = name  # even if its check takes too long: otherwise no later table would be reached
            try:
                found = [str(line) for (line,) in connection.execute(_CHECK, (name,))]
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
                    return
                found = [str(error)]
            damaged = found != ["ok"]
            if damaged:
                log.error("the table %s of the database is damaged: %s", name, "; ".join(found[:5]))
            with self._lock:
                (self._damaged.add if damaged else self._damaged.discard)(name)


class Store:
    """All readers of the database, and the writers that need no lease: submissions, requests, taking the lease.

    Safe to share between threads.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.submissions = Submissions(database)
        self.accounts, self.owner = AccountReader(database), AccountWriter(database)
        self.logins, self.directory = LoginWriter(database), DirectoryReader(database)
        self.shares = Shares(database)
        self.audit, self.quotas = AuditLog(database), QuotaReader(database)
        self.sweeps = SweepReader(database)
        self.expansion = ExpansionReader(database)
        self.trials = TrialReader(database)
        self.listings = ListingReader(database)
        self.annotations = Annotations(database)
        self.plots = PlotReader(database)
        self.trainings = TrainingReader(database)
        self.trial_results = TrialResultReader(database)
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
        """The store of the database that the settings name; `migrate` upgrades its schema.

        Raises UnavailableError, also for the database of a newer release, and MetricsweepError for the file of its
        password.
        """
        return cls._opened(Database(settings.database, lambda: Secrets(settings).database_password), migrate)

    @classmethod
    def open(cls, url: str, migrate: bool = True) -> "Store":
        """The store of the database at a SQLAlchemy URL; `migrate` upgrades its schema. Raises UnavailableError."""
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
        """The writers of the conductor, for the holder of the lease with this fence."""
        return Writer(self.database, fence)

    def close(self) -> None:
        """Close every connection to the database."""
        self.database.close()

    def ping(self) -> None:
        """Raise UnavailableError unless the database answers."""
        with self.database.reading() as connection:
            connection.execute(sa.select(1)).one()

    def behind(self) -> str | None:
        """How the database's schema differs from that of this release, or `None`; raises UnavailableError."""
        with self.database.reading() as connection:
            return difference(connection)


class Writer:
    """All writers of the conductor. Every write raises FencedError if another conductor has the lease."""

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
