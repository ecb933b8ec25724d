"""The lease that makes one conductor the only writer, with a fence number that grows with every holder."""

import uuid
from dataclasses import dataclass, field

import sqlalchemy as sa

from orchestrator.record.columns import DatabaseSeconds
from orchestrator.record.database import CONDUCTOR, Access, Database, FencedDatabase, insert_missing
from orchestrator.record.schema import installation, lease

_OURS = lease.c.name == CONDUCTOR


@dataclass(frozen=True, slots=True)
class HeldLease:
    """The conductor's lease as it was read once. Every renewal changes it."""

    fence: int
    until: float
    seconds: float
    free: bool = field(default=False, compare=False)
    """Whether it was given back or had expired, by the database's clock."""


class Lease(Access):
    """Reads and takes the conductor's lease, by the database's clock."""

    def held(self) -> HeldLease | None:
        """The conductor's lease as it is now; `None` if it was never taken."""
        free = (lease.c.until <= DatabaseSeconds()).label("free")
        row = self._row(sa.select(lease.c.fence, lease.c.until, lease.c.seconds, free).where(_OURS))
        return None if row is None else HeldLease(row.fence, row.until, row.seconds, bool(row.free))

    def acquire(self, holder: str, seconds: float, lapsed: HeldLease | None = None) -> int | None:
        """Take the conductor's lease if it is free, has expired or is still `lapsed`; returns the fence, or `None`.

        `lapsed`: the lease that, by the caller's clock, was not renewed for its whole length.
        """
        now = DatabaseSeconds()
        free = lease.c.until <= now
        if lapsed is not None:
            free = sa.or_(free, sa.and_(lease.c.fence == lapsed.fence, lease.c.until == lapsed.until))
        values = {"holder": holder, "until": now + seconds, "seconds": seconds}
        with self._database.writing() as connection:
            insert_missing(connection, lease, {"name": CONDUCTOR, "fence": 0, **values, "until": 0.0})
            taken = connection.scalar(
                sa.update(lease).where(_OURS, free).values(fence=lease.c.fence + 1, **values).returning(lease.c.fence)
            )
            return None if taken is None else int(taken)

    def conducted(self) -> bool:
        """Whether a conductor holds the lease now."""
        return self._exists(sa.select(lease.c.name).where(_OURS, lease.c.until > DatabaseSeconds()))


class LeaseWriter:
    """Renews and releases the lease of the present conductor."""

    def __init__(self, database: Database, fenced: FencedDatabase) -> None:
        self._database, self._fenced = database, fenced

    @property
    def fence(self) -> int:
        """The fencing number of the present conductor's lease."""
        return self._fenced.fence

    def installation(self) -> str:
        """The UUID of this database, which its first conductor has made."""
        with self._fenced.writing() as connection:
            insert_missing(connection, installation, {"id": 1, "uid": str(uuid.uuid4())})
            return str(connection.execute(sa.select(installation.c.uid)).scalar_one())

    def renew(self, seconds: float) -> bool:
        """Extend the conductor's lease to `seconds` from now; False if another conductor has it."""
        renewal = sa.update(lease).where(_OURS, lease.c.fence == self._fenced.fence)
        with self._database.writing() as connection:
            return connection.execute(renewal.values(until=DatabaseSeconds() + seconds)).rowcount == 1

    def release(self) -> None:
        """Release the conductor's lease, if it is still ours, so that the next conductor need not wait."""
        with self._database.writing() as connection:
            connection.execute(sa.update(lease).where(_OURS, lease.c.fence == self._fenced.fence).values(until=0.0))


def extend(connection: sa.Connection) -> None:
    """Renew the lease at the end of a long transaction, since that blocks the regular renewal."""
    connection.execute(sa.update(lease).where(_OURS).values(until=DatabaseSeconds() + lease.c.seconds))
