"""The ground that worlds take turns at: a home whose database is empty when one begins, and its connections."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from orchestrator.record import database as product
from orchestrator.record.database import Database
from orchestrator.record.store import Store
from tests.simulation.world import World
from workers import catalog as catalogs

_MEMORY = Path("/dev/shm")
MEMORY = _MEMORY if os.access(_MEMORY, os.W_OK) else None
"""Where a folder lies in memory; none: this machine has no such place."""
_STATEMENTS = 1_000
"""Statements that SQLite keeps prepared; the product has some hundreds."""


class Ground:
    """One engine of SQLAlchemy for all worlds: what it has compiled serves the next one too.

    Its connections are kept from transaction to transaction, which in a world costs a third of its time otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self.home, self._empty = folder / "home", folder / "empty.db"
        Store.open(f"sqlite:///{self._empty}").close()
        self.catalog = catalogs.load()
        self.database = Database(f"sqlite:///{self.home / 'metricsweep.db'}")
        self.tables: dict[object, bytes] = {}
        """Of grids in worlds without any trouble, by what they tried."""
        self._world: World | None = None
        self._free: list[sa.Connection] = []
        self._outside: sqlite3.Connection | None = None
        engine = self.database.engine
        sa.event.remove(engine, "begin", product._sqlite_begin)
        sa.event.listen(engine, "do_connect", lambda *given: given[3].update(cached_statements=_STATEMENTS))
        sa.event.listen(engine, "connect", self._clocked)

    def cleared(self, world: World) -> Path:
        """The home as a new world finds it, whose clock is the database's."""
        self.close()
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(mode=0o700)
        shutil.copy(self._empty, self.home / "metricsweep.db")
        self._world = world
        return self.home

    @contextmanager
    def transaction(self, begin: str) -> Iterator[sa.Connection]:
        """A transaction that begins so, as the product's: it is committed, or rolled back where anything is raised."""
        connection = self._free.pop() if self._free else self._connected()
        raw: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
        raw.execute(begin)
        try:
            yield connection
        except BaseException:
            raw.execute("ROLLBACK")
            raise
        else:
            raw.execute("COMMIT")
        finally:
            self._free.append(connection)

    @property
    def outside(self) -> sqlite3.Connection:
        """Reads what is committed, from outside of the world."""
        if self._outside is None:
            self._outside = sqlite3.connect(self.home / "metricsweep.db", cached_statements=_STATEMENTS)
            self._outside.row_factory = sqlite3.Row
        return self._outside

    def close(self) -> None:
        """Close every connection."""
        while self._free:
            self._free.pop().close()
        if self._outside is not None:
            self._outside.close()
            self._outside = None
        self.database.close()

    def _connected(self) -> sa.Connection:
        connection = self.database.engine.connect()
        connection.begin()  # by SQLAlchemy's book; SQLite gets it from `transaction`
        return connection

    def _clocked(self, connection: object, record: object) -> None:
        assert self._world is not None
        connection.create_function("julianday", 1, self._world.julianday)  # type: ignore[attr-defined]
