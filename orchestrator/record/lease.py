"""The lease that makes one conductor the only writer, with a fence number that grows with every holder."""

import uuid
from dataclasses import dataclass, field

import sqlalchemy as sa

from orchestrator.record.columns import DatabaseSeconds
from orchestrator.record.database import CONDUCTOR, Access, Database, FencedDatabase, insertion
from orchestrator.record.schema import installation, lease

_OURS = lease.c.name == CONDUCTOR
_FREE = lease.c.until <= DatabaseSeconds()
_HELD = sa.select(lease.c.fence, lease.c.until, lease.c.seconds, _FREE.label("free")).where(_OURS)


@dataclass(frozen=True, slots=True)
class Held:
    """The lease as it was seen at one moment; any renewal changes it."""

    fence: int
    until: float
    seconds: float
    free: bool = field(default=False, compare=False)
    """Whether it was given back or had run out, by the database's clock."""


class Lease(Access):
    """The conductor's lease as everyone sees it, and the taking of it, judged by the database's clock."""

    def held(self) -> Held | None:
        """The lease as it is; none where nobody ever took it."""
        with self._database.reading() as connection:
            row = connection.execute(_HELD).one_or_none()
        return None if row is None else Held(row.fence, row.until, row.seconds, bool(row.free))

    def acquire(self, holder: str, seconds: float, lapsed: Held | None = None) -> int | None:
        """The new fence when the lease was free or had run out, none while another holds it.

        Also when it is still `lapsed`: what the caller, by its own clock, has seen unrenewed for its whole length.
        """
        now = DatabaseSeconds()
        free = lease.c.until <= now
        if lapsed is not None:
            free = sa.or_(free, sa.and_(lease.c.fence == lapsed.fence, lease.c.until == lapsed.until))
        values = {"holder": holder, "until": now + seconds, "seconds": seconds}
        with self._database.writing() as connection:
            first = insertion(connection, lease).values(name=CONDUCTOR, fence=0, **(values | {"until": 0.0}))
            connection.execute(first.on_conflict_do_nothing())
            taken = connection.execute(
                sa.update(lease).where(_OURS, free).values(fence=lease.c.fence + 1, **values).returning(lease.c.fence)
            ).scalar_one_or_none()
            return None if taken is None else int(taken)

    def conducted(self) -> bool:
        """Whether a conductor holds the lease."""
        with self._database.reading() as connection:
            return (
                connection.execute(sa.select(lease.c.name).where(_OURS, lease.c.until > DatabaseSeconds())).first()
                is not None
            )


class LeaseWriter:
    """The lease to the one who took it: kept, and given back."""

    def __init__(self, database: Database, fenced: FencedDatabase) -> None:
        self._database, self._fenced = database, fenced

    @property
    def fence(self) -> int:
        """The number that it carries."""
        return self._fenced.fence

    def installation(self) -> str:
        """The UUID of whatever shares this database, made by its first conductor."""
        with self._fenced.writing() as connection:
            made = insertion(connection, installation).values(id=1, uid=str(uuid.uuid4()))
            connection.execute(made.on_conflict_do_nothing())
            return str(connection.execute(sa.select(installation.c.uid)).scalar_one())

    def renew(self, seconds: float) -> bool:
        """Whether the lease is still ours; it then lasts `seconds` from now."""
        renewal = sa.update(lease).where(_OURS, lease.c.fence == self._fenced.fence)
        with self._database.writing() as connection:
            return connection.execute(renewal.values(until=DatabaseSeconds() + seconds)).rowcount == 1

    def release(self) -> None:
        """Give the lease back, so that the next conductor need not wait; nothing happens if it is another's."""
        with self._database.writing() as connection:
            connection.execute(sa.update(lease).where(_OURS, lease.c.fence == self._fenced.fence).values(until=0.0))


def extend(connection: sa.Connection) -> None:
    """Start the lease's time anew at the end of a long transaction, during which no renewal could be written."""
    connection.execute(sa.update(lease).where(_OURS).values(until=DatabaseSeconds() + lease.c.seconds))
