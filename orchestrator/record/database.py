"""One database, SQLite or Postgres: how it is opened, and its reading and writing transactions."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from orchestrator.record import seen_rows
from orchestrator.record.schema import lease
from orchestrator.views.accounts import caller
from orchestrator.views.errors import FencedError, UnavailableError

CONDUCTOR = "conductor"
"""The name of the one lease."""

_BUSY_MILLISECONDS = 30_000
_FENCE = sa.select(lease.c.fence).where(lease.c.name == CONDUCTOR)  # made once: it begins every write of a conductor
_FENCE_LOCKED = _FENCE.with_for_update()

Item = TypeVar("Item")


def _sqlite_connected(connection: Any, record: Any) -> None:
    # The driver must not begin transactions by itself: it begins late, and going from reading to writing deadlocks.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_MILLISECONDS}", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    _write_ahead(cursor)
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Have the file keep a write-ahead log. While two processes switch a new file at once, SQLite does not wait."""
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _sqlite_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


_LOST_AFTER: Final = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}  # fmt: skip
"""libpq's settings with which a Postgres whose machine is gone without a word is noticed within 25 s. By the system's
own, whoever waits for an answer waits for two hours. What the database's URL says comes first."""


class Database:
    """An engine with transactions of two kinds: those that read one moment, and those that write."""

    def __init__(self, url: str, password: Callable[[], str | None] = lambda: None) -> None:
        """`password`: that of a URL without one, asked for each new connection, since it may be exchanged."""
        parsed = sa.make_url(url)
        self._password = password
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if self.sqlite and parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        self.engine = self._engine(parsed)
        self._reader = self._reading(self.engine)
        self._writer = self.engine.execution_options(writes=True)
        self._seeing: sa.Engine | None = None
        self._lock = threading.Lock()

    def _engine(self, url: sa.URL) -> sa.Engine:
        # More connections than the 40 threads of the API use at once would only wait for one another.
        engine = sa.create_engine(url, pool_pre_ping=not self.sqlite, pool_size=10, max_overflow=30)
        if self.sqlite:
            sa.event.listen(engine, "connect", _sqlite_connected)
            sa.event.listen(engine, "begin", _sqlite_begin)
        else:
            sa.event.listen(engine, "do_connect", self._connecting)
        return engine

    def _connecting(self, dialect: Any, record: Any, args: Any, parameters: dict[str, Any]) -> None:
        for name, value in _LOST_AFTER.items():
            parameters.setdefault(name, value)
        if "password" not in parameters and (password := self._password()):
            parameters["password"] = password

    def _reading(self, engine: sa.Engine) -> sa.Engine:
        if self.sqlite:
            return engine
        return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    def _seen(self) -> sa.Engine:
        """The engine of callers that do not see everything: connections of its own, which nobody else is given."""
        with self._lock:
            if self._seeing is None:
                engine = self._engine(self.engine.url)
                seen_rows.install(engine)
                self._seeing = self._reading(engine)
            return self._seeing

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment of the database, as far as the caller may; raises UnavailableError."""
        who = caller()
        if who.seen is None:
            with _unavailable(), self._reader.begin() as connection:
                yield connection
            return
        with _unavailable(), self._seen().begin() as connection:
            seen_rows.show(connection, who)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that writes, whoever holds the lease; raises UnavailableError."""
        with _unavailable(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()
        if self._seeing is not None:
            self._seeing.dispose()


class FencedDatabase:
    """The same to the conductor that holds the lease: each of its writes is refused once the lease has passed on."""

    def __init__(self, database: Database, fence: int) -> None:
        self._database, self.fence = database, fence

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one moment of the database, whoever holds the lease; raises UnavailableError."""
        with self._database.reading() as connection:
            yield connection

    @contextmanager
    def holding(self) -> Iterator[sa.Connection]:
        """The same, only while the lease still carries our fence (else FencedError)."""
        with self._database.reading() as connection:
            _check_fence(connection, self.fence)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that writes, only while the lease still carries our fence (else FencedError)."""
        with self._database.writing() as connection:
            _check_fence(connection, self.fence, lock=True)
            yield connection


class Access:
    """What reads, or what everyone may write: it has the database."""

    def __init__(self, database: Database) -> None:
        self._database = database


class FencedAccess:
    """What only the holder of the lease may write."""

    def __init__(self, database: FencedDatabase) -> None:
        self._database = database


def insertion(connection: sa.Connection, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """The dialect's INSERT, which knows ON CONFLICT."""
    return insertion_of(connection.dialect.name, table)


def insertion_of(dialect: str, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """That of a dialect by its name."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def chunked(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most `size`: a statement takes no more than 32,766 parameters on SQLite."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _check_fence(connection: sa.Connection, fence: int, *, lock: bool = False) -> None:
    """Raise FencedError unless the lease carries `fence`; with `lock` it stays so until the transaction ends."""
    row = connection.execute(_FENCE_LOCKED if lock else _FENCE).one_or_none()
    if row is None or row.fence != fence:
        raise FencedError(f"the lease has passed on (fence {row.fence if row else 'none'}, ours is {fence})")


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeoutError) as error:
        if _refused(error):
            raise
        if (trouble := file_trouble(error)) is not None:
            raise UnavailableError(trouble) from error
        raise UnavailableError(f"the database cannot be used: {_first_line(error)}") from error
    except DBAPIError as error:
        if (trouble := file_trouble(error)) is not None:
            raise UnavailableError(trouble) from error
        if error.connection_invalidated:
            raise UnavailableError(f"the database connection was lost: {_first_line(error)}") from error
        raise


def _refused(error: Exception) -> bool:
    """Whether the database is there and only this statement is more than it takes: waiting would not help."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    return str(getattr(cause, "sqlstate", None) or "").startswith("54")  # program limit exceeded


_FILE_TROUBLE: Final = {
    sqlite3.SQLITE_FULL: "the database cannot be written: its disk is full",
    sqlite3.SQLITE_READONLY: "the database cannot be written: its file or its disk is read-only",
    sqlite3.SQLITE_IOERR: "the database cannot be used: its disk is full or broken",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened: its folder is missing, read-only or on a full disk",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged; stop the service and restore a backup",
    sqlite3.SQLITE_NOTADB: "the database file is damaged: it is no SQLite file; restore a backup",
}


def file_trouble(error: Exception) -> str | None:
    """What is wrong with the file of a SQLite database, by SQLite's answer; `None` for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(cause, "sqlite_errorcode", None) if isinstance(cause, sqlite3.Error) else None
    return None if code is None else _FILE_TROUBLE.get(code & 0xFF)


def _first_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).splitlines() or [type(error).__name__])[0]
