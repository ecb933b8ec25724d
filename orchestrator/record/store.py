"""The store: everything that reads or writes the database, opened from one URL."""

import sqlalchemy as sa

from orchestrator.record.applying import Applying
from orchestrator.record.artifacts import Artifacts
from orchestrator.record.availability import AskedNeed, Availability, Findings
from orchestrator.record.capacity import AskedSlot, Capacity, Nodes
from orchestrator.record.claims import Claims
from orchestrator.record.database import Database
from orchestrator.record.deleting import Deleting
from orchestrator.record.durations import Durations
from orchestrator.record.evidences import Evidences
from orchestrator.record.extending import Extending
from orchestrator.record.leases import Leases
from orchestrator.record.migrations import migrate as upgrade
from orchestrator.record.mirror_states import MirrorStates
from orchestrator.record.outbox import Dirty, Outbox
from orchestrator.record.outcomes import Outcomes
from orchestrator.record.places import Places
from orchestrator.record.pruning import Competitor, Evaluation, Pruning, Verdict
from orchestrator.record.queueing import Queueing
from orchestrator.record.renewing import Renewing
from orchestrator.record.request_views import RequestViews
from orchestrator.record.requests import PendingRequest, QueuedSweep, Requests
from orchestrator.record.runs import Runs
from orchestrator.record.searching import OpenCell, Searching, Suggested
from orchestrator.record.settling import Settling
from orchestrator.record.starting import Starting
from orchestrator.record.submissions import NewSweep, Submissions
from orchestrator.record.sweep_views import SweepViews
from orchestrator.record.trial_views import TrialViews

__all__ = [
    "AskedNeed",
    "AskedSlot",
    "Competitor",
    "Dirty",
    "Evaluation",
    "NewSweep",
    "OpenCell",
    "PendingRequest",
    "QueuedSweep",
    "Store",
    "Suggested",
    "Verdict",
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
    Places,
    Evidences,
    Nodes,
    Findings,
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
