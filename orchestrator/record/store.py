"""The store: everything that reads or writes the database, opened from one URL."""

import sqlalchemy as sa

from orchestrator.record.database import Database
from orchestrator.record.migrations import migrate as upgrade
from orchestrator.record.mlflow.mirror_states import MirrorStates
from orchestrator.record.mlflow.outbox import Dirty, Outbox
from orchestrator.record.mlflow.runs import Runs
from orchestrator.record.reads.artifacts import Artifacts
from orchestrator.record.reads.durations import Durations
from orchestrator.record.reads.lineage import Lineage
from orchestrator.record.reads.outcomes import Outcomes
from orchestrator.record.reads.request_views import RequestViews
from orchestrator.record.reads.sweep_views import SweepViews
from orchestrator.record.reads.trial_keys import TrialKeys
from orchestrator.record.reads.trial_views import TrialViews
from orchestrator.record.writes.applying import Applying
from orchestrator.record.writes.availability import AskedNeed, Availability, DataFindings
from orchestrator.record.writes.capacity import AskedSlot, Capacity, Nodes
from orchestrator.record.writes.claims import Claims
from orchestrator.record.writes.deleting import Deleting
from orchestrator.record.writes.extending import Extending
from orchestrator.record.writes.leases import Leases
from orchestrator.record.writes.pruning import Competitor, Pruning, PruningDecision, RecordedEvaluation
from orchestrator.record.writes.queueing import Queueing
from orchestrator.record.writes.renewing import Renewing
from orchestrator.record.writes.requests import PendingRequest, QueuedSweep, Requests
from orchestrator.record.writes.searching import OpenCell, Searching, Suggested
from orchestrator.record.writes.settling import Settling
from orchestrator.record.writes.starting import Starting
from orchestrator.record.writes.submissions import NewSweep, Submissions

__all__ = [
    "AskedNeed",
    "AskedSlot",
    "Competitor",
    "Dirty",
    "NewSweep",
    "OpenCell",
    "PendingRequest",
    "PruningDecision",
    "QueuedSweep",
    "RecordedEvaluation",
    "Store",
    "Suggested",
]


class Client(
    Submissions,
    SweepViews,
    RequestViews,
    TrialViews,
    Artifacts,
    Outcomes,
    Durations,
    Runs,
    TrialKeys,
    Lineage,
    Nodes,
    DataFindings,
):
    """What the API uses: it appends sweeps and requests, and reads."""


class Conductor(
    Leases,
    Requests,
    Starting,
    Searching,
    Pruning,
    Extending,
    Renewing,
    Deleting,
    Queueing,
    Capacity,
    Availability,
    Claims,
    Applying,
    Settling,
    Outbox,
    MirrorStates,
):
    """What the holder of the lease uses: it alone changes what exists."""


class Store(Client, Conductor):
    """Both sides over one database. Safe to share between threads."""

    @classmethod
    def open(cls, url: str, migrate: bool = True) -> "Store":
        """The store at a SQLAlchemy URL, brought to this version's schema; raises UnavailableError."""
        database = Database(url)
        if migrate:
            with database.writing() as connection:
                upgrade(connection)
        return cls(database)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def ping(self) -> None:
        """Raise UnavailableError unless the database answers."""
        with self._database.reading() as connection:
            connection.execute(sa.select(1)).one()
