"""The database: its engine and transactions, cursors, and which rows a caller may see."""

import base64
import binascii
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

from orchestrator.record.schema import candidate, lease, request, sweep, trial
from orchestrator.views.accounts import Caller, caller
from orchestrator.views.errors import ConflictError, FencedError, NotFoundError, UnavailableError

DELETE: Final = "delete"
"""The kind of request that makes a sweep go."""
REFUSED: Final = "refused: "
"""What the outcome of a request that was not carried out begins with."""


_KNOWN: Final = sa.select(sweep.c.id).where(sweep.c.id == sa.bindparam("wanted"))


def require_sweep(connection: sa.Connection, wanted: int) -> None:
    """Raise NotFoundError unless the sweep exists; it says when and for whom one was deleted."""
    if connection.execute(_KNOWN, {"wanted": wanted}).first() is None:
        raise NotFoundError(absence(connection, wanted))


def absence(connection: sa.Connection, wanted: int) -> str:
    """Why there is no such sweep, in words."""
    deletions = _deletions(wanted).where(request.c.applied.is_not(None), ~request.c.outcome.startswith(REFUSED))
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is None:
        return f"no sweep {wanted}"
    return f"no sweep {wanted}: it was deleted at {row.applied:%Y-%m-%d %H:%M} UTC{asked_by(row)}"


def require_lasting(connection: sa.Connection, wanted: int, before: int | None = None) -> None:
    """Raise ConflictError where the sweep is about to be deleted; `before`: by an earlier request than this one."""
    deletions = _deletions(wanted).where(request.c.applied.is_(None))
    if before is not None:
        deletions = deletions.where(request.c.id < before)
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is not None:
        raise ConflictError(
            f"sweep {wanted} is about to be deleted{asked_by(row)}; nothing more can be asked of it, and a copy of it "
            "can be submitted as a new sweep"
        )


def _deletions(wanted: int) -> sa.Select[Any]:
    return sa.select(request).where(request.c.sweep_id == wanted, request.c.kind == DELETE)


def asked_by(row: sa.Row[Any]) -> str:
    """Who asked for a request, if that is known, and which it is: to be put behind what it did."""
    return f", as {row.actor} asked (request {row.id})" if row.actor else f" (request {row.id})"


def encode(last: int) -> str:
    """The cursor after the row `last`."""
    return base64.urlsafe_b64encode(str(last).encode()).decode().rstrip("=")


def decode(cursor: str) -> int:
    """The row that a cursor stands after; raises NotFoundError for what is not a cursor of ours."""
    try:
        last = int(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii"))
        if not 0 <= last < 2**63:
            raise ValueError("no row has this number")
        return last
    except (binascii.Error, ValueError) as error:
        raise NotFoundError(f"no page at cursor {cursor!r}: pass `next_cursor` of the page before") from error


def of_candidate() -> sa.ColumnElement[bool]:
    """The join of a trial with its candidate."""
    return sa.and_(
        candidate.c.sweep_id == trial.c.sweep_id,
        candidate.c.cell == trial.c.cell,
        candidate.c.candidate == trial.c.candidate,
    )


def first_of_either(*either: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """The id of the first trial for which one of the conditions holds, each of which has an index.

    Of `a OR b ORDER BY id LIMIT 1` SQLite goes through all trials from the first on, a year of ended ones.
    """
    found = sa.union_all(*(sa.select(trial.c.id).where(one) for one in either)).subquery()
    return sa.select(sa.func.min(found.c.id)).scalar_subquery()


_PROJECTS: Final = "metricsweep.projects"
_ACCOUNT: Final = "metricsweep.account"

OF_SWEEPS: Final = (
    "trial", "cell", "candidate", "note", "tag", "trial_column", "sweep_need", "resolution", "outbox", "change",
    "delivery",
)  # fmt: skip
"""Tables whose rows are of one sweep."""

_MINE: Final = {
    "sweep": "project_id IN ({seen})",
    # What became of a request is told after its sweep has gone.
    "request": "project_id IN ({seen}) OR sweep_id IN (SELECT id FROM {real}.sweep WHERE project_id IN ({seen}))",
    # A training is seen by whoever has a trial of it: trials of several sweeps may share it.
    "training": (
        "EXISTS (SELECT 1 FROM {real}.trial AS t JOIN {real}.sweep AS s ON s.id = t.sweep_id"
        " WHERE (t.training_id = {real}.training.id OR t.evaluation_id = {real}.training.id)"
        " AND s.project_id IN ({seen}))"
    ),
    "need": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.need.key AND s.project_id IN ({seen}))"
    ),
    "finding": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.finding.need AND s.project_id IN ({seen}))"
    ),
    "project": "id IN ({seen})",
    # Who else there is, and by which tokens, no query of a caller needs.
    "account": "id IN ({own})",
    "membership": "account_id IN ({own})",
    "token": "account_id IN ({own})",
    "audit": "1 = 0",
    "quota": "1 = 0",
    "past_attempt": "1 = 0",
}


def install(engine: sa.Engine) -> None:
    """Have every connection of an engine of its own see nothing but what `show` says."""
    sqlite = engine.dialect.name == "sqlite"

    def connected(connection: Any, record: Any) -> None:
        cursor = connection.cursor()
        if not sqlite:
            cursor.execute("SELECT current_schema()")
        for statement in _statements("main" if sqlite else cursor.fetchone()[0], sqlite):
            cursor.execute(statement)
        cursor.close()
        if not sqlite:
            connection.commit()

    sa.event.listen(engine, "connect", connected)


def show(connection: sa.Connection, who: Caller) -> None:
    """Begin a transaction of a caller: from here on it sees the sweeps of its projects, and what is its own."""
    seen = sorted(who.seen or ())
    own = [] if who.user is None else [who.user]
    if connection.dialect.name == "sqlite":
        for table, numbers in (("seen_project", seen), ("own_account", own)):
            connection.exec_driver_sql(f"DELETE FROM temp.{table}")  # noqa: S608  names of ours
            for one in numbers:
                connection.exec_driver_sql(f"INSERT INTO temp.{table} VALUES (?)", (one,))  # noqa: S608
        return
    said = {name: "{" + ",".join(map(str, numbers)) + "}" for name, numbers in ((_PROJECTS, seen), (_ACCOUNT, own))}
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in said.items())))


def _statements(schema: str, sqlite: bool) -> Iterator[str]:
    real = f'"{schema}"'
    if sqlite:
        yield "CREATE TEMP TABLE seen_project (id INTEGER PRIMARY KEY)"
        yield "CREATE TEMP TABLE own_account (id INTEGER PRIMARY KEY)"
        seen, own = "SELECT id FROM temp.seen_project", "SELECT id FROM temp.own_account"
    else:  # of the transaction alone; none is set: no project
        seen, own = (
            f"SELECT unnest(coalesce(nullif(current_setting('{name}', true), ''), '{{}}')::int[])"
            for name in (_PROJECTS, _ACCOUNT)
        )
    for name, mine in _MINE.items():
        where = mine.format(seen=seen, own=own, real=real)
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE {where}"  # noqa: S608  names of ours
    for name in OF_SWEEPS:
        its = f"SELECT id FROM {real}.sweep WHERE project_id IN ({seen})"  # noqa: S608
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE sweep_id IN ({its})"  # noqa: S608


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
                install(engine)
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
            show(connection, who)
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
