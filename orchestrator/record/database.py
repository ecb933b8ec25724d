"""The database: its engine and transactions, cursors, and which rows a caller may see."""

import base64
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from orchestrator.record.schema import candidate, cell, lease, request, sweep, trial
from orchestrator.views.accounts import Caller, caller
from orchestrator.views.errors import ConflictError, FencedError, NotFoundError, UnavailableError
from orchestrator.views.states import SweepState

Item = TypeVar("Item")

DELETE: Final = "delete"
"""The kind of request that deletes a sweep."""
REFUSED: Final = "refused: "
"""The prefix of a refused request's outcome."""


def require_sweep(connection: sa.Connection, wanted: int) -> SweepState:
    """The state of a sweep; raises NotFoundError, whose message names the time and the user of a deletion."""
    state = connection.scalar(sa.select(sweep.c.state).where(sweep.c.id == wanted))
    if state is None:
        raise NotFoundError(absence(connection, wanted))
    return SweepState(state)


def absence(connection: sa.Connection, wanted: int) -> str:
    """The message that a sweep does not exist, with the time and user of its deletion if it was deleted."""
    deletions = _deletions(wanted).where(request.c.applied.is_not(None), ~request.c.outcome.startswith(REFUSED))
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is None:
        return f"no sweep {wanted}"
    return f"no sweep {wanted}: it was deleted at {row.applied:%Y-%m-%d %H:%M} UTC{by_request(row)}"


def require_lasting(connection: sa.Connection, wanted: int, before: int | None = None) -> None:
    """Raise ConflictError if a waiting request will delete the sweep.

    `before`: only a request with a lower number counts.
    """
    deletions = _deletions(wanted).where(request.c.applied.is_(None))
    if before is not None:
        deletions = deletions.where(request.c.id < before)
    row = connection.execute(deletions.order_by(request.c.id).limit(1)).first()
    if row is not None:
        raise ConflictError(
            f"sweep {wanted} is about to be deleted{by_request(row)}; no further request is accepted; a copy "
            "of it can be submitted as a new sweep"
        )


def _deletions(wanted: int) -> sa.Select[Any]:
    return sa.select(request).where(request.c.sweep_id == wanted, request.c.kind == DELETE)


def by_request(row: sa.Row[Any]) -> str:
    """The end of a message that names a request and its user: `, as ada asked (request 7)`."""
    return f", as {row.actor} asked (request {row.id})" if row.actor else f" (request {row.id})"


def encode(last: Any) -> str:
    """The cursor of the next page of a list, from JSON that identifies the last row so far."""
    return base64.urlsafe_b64encode(json.dumps(last, ensure_ascii=False).encode()).decode().rstrip("=")


def decode(cursor: str, check: Callable[[Any], Item]) -> Item:
    """The JSON of a page cursor, converted by `check`; raises NotFoundError if that raises ValueError or TypeError."""
    try:
        return check(json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))))
    except (ValueError, TypeError, RecursionError) as error:
        raise NotFoundError(f"no page at cursor {cursor!r}: pass `next_cursor` of the page before") from error


def _number(last: Any) -> int:
    if not isinstance(last, int) or not 0 <= last < 2**63:
        raise ValueError("no row has this number")
    return last


def page_after(
    query: sa.Select[Any], by: sa.ColumnElement[int], cursor: str | None, limit: int, *, newest: bool = False
) -> sa.Select[Any]:
    """The query of a page of rows, sorted by a column of distinct numbers, the `newest` first or last.

    It has one row more than the page shows, from which `next_cursor` sees whether another page follows.
    """
    query = query.order_by(by.desc() if newest else by).limit(limit + 1)
    if cursor is None:
        return query
    last = decode(cursor, _number)
    return query.where(by < last if newest else by > last)


def next_cursor(rows: Sequence[sa.Row[Any]], limit: int, by: str = "id") -> str | None:
    """The cursor of the page after the rows of a query by `page_after`; `None` after the last page."""
    return encode(getattr(rows[limit - 1], by)) if len(rows) > limit else None


def with_labels(query: sa.Select[Any]) -> sa.Select[Any]:
    """Add the labels of the cell and the candidate to a query of trials, as `cell_labels` and `candidate_labels`."""
    its_cell = sa.and_(cell.c.sweep_id == trial.c.sweep_id, cell.c.cell == trial.c.cell)
    labels = cell.c.labels.label("cell_labels"), candidate.c.labels.label("candidate_labels")
    return query.add_columns(*labels).join(cell, its_cell).join(candidate, of_candidate())


def trials_by_state(connection: sa.Connection, wanted: int) -> dict[str, int]:
    """The number of a sweep's trials in each state that one of them has."""
    query = sa.select(trial.c.state, sa.func.count()).where(trial.c.sweep_id == wanted).group_by(trial.c.state)
    return dict(connection.execute(query).tuples().all())


def next_position(connection: sa.Connection, wanted: int) -> int:
    """The position of the next trial that is added to a sweep."""
    last = connection.scalar(sa.select(sa.func.max(trial.c.position)).where(trial.c.sweep_id == wanted))
    return 0 if last is None else last + 1


def of_candidate() -> sa.ColumnElement[bool]:
    """The SQL condition that joins a trial with its candidate."""
    return sa.and_(
        candidate.c.sweep_id == trial.c.sweep_id,
        candidate.c.cell == trial.c.cell,
        candidate.c.candidate == trial.c.candidate,
    )


def first_of_either(*either: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    """SQL for the smallest id of the trials that meet one of several conditions, each of which has an index.

    For `a OR b ORDER BY id LIMIT 1`, SQLite would scan all trials from the first.
    """
    found = sa.union_all(*(sa.select(trial.c.id).where(condition) for condition in either)).subquery()
    return sa.select(sa.func.min(found.c.id)).scalar_subquery()


_PROJECTS: Final = "metricsweep.projects"
_ACCOUNT: Final = "metricsweep.account"
_SHARED: Final = "metricsweep.shared"

OF_SWEEPS: Final = (
    "trial", "cell", "candidate", "note", "tag", "trial_column", "sweep_need", "resolution", "outbox", "change",
    "delivery", "share",
)  # fmt: skip
"""Tables whose rows belong to one sweep."""

_MINE: Final = {
    "sweep": "project_id IN ({seen}) OR id IN ({shared})",
    # The outcome of a request is shown after its sweep is deleted.
    "request": (
        "project_id IN ({seen}) OR sweep_id IN ({shared})"
        " OR sweep_id IN (SELECT id FROM {real}.sweep WHERE project_id IN ({seen}))"
    ),
    # Every project with a trial of a training sees it: trials of several sweeps may share it.
    "training": (
        "EXISTS (SELECT 1 FROM {real}.trial AS t JOIN {real}.sweep AS s ON s.id = t.sweep_id"
        " WHERE (t.training_id = {real}.training.id OR t.evaluation_id = {real}.training.id)"
        " AND (s.project_id IN ({seen}) OR s.id IN ({shared})))"
    ),
    "need": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.need.key AND s.project_id IN ({seen}))"
    ),
    "finding": (
        "EXISTS (SELECT 1 FROM {real}.sweep_need AS n JOIN {real}.sweep AS s ON s.id = n.sweep_id"
        " WHERE n.need = {real}.finding.need AND s.project_id IN ({seen}))"
    ),
    "project": "id IN ({seen}) OR id IN (SELECT project_id FROM {real}.sweep WHERE id IN ({shared}))",
    # No query of a caller needs the accounts and tokens of others.
    "account": "id IN ({own})",
    "membership": "account_id IN ({own})",
    "token": "account_id IN ({own})",
    "audit": "1 = 0",
    "quota": "1 = 0",
    "past_attempt": "1 = 0",
}


def install(engine: sa.Engine) -> None:
    """Make every connection of an engine read only the rows that `show` allows."""
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
    """Limit a transaction to what a caller may see: its account, and the sweeps of its projects and share links."""
    seen, shared = sorted(who.seen or ()), sorted(who.shared)
    own = [] if who.user is None else [who.user]
    if connection.dialect.name == "sqlite":
        for table, numbers in (("seen_project", seen), ("own_account", own), ("shared_sweep", shared)):
            connection.exec_driver_sql(f"DELETE FROM temp.{table}")  # noqa: S608  names of ours
            for number in numbers:
                connection.exec_driver_sql(f"INSERT INTO temp.{table} VALUES (?)", (number,))  # noqa: S608
        return
    given = ((_PROJECTS, seen), (_ACCOUNT, own), (_SHARED, shared))
    lists = ((name, "{" + ",".join(map(str, numbers)) + "}") for name, numbers in given)
    connection.execute(sa.select(*(sa.func.set_config(name, value, True) for name, value in lists)))


def _statements(schema: str, sqlite: bool) -> Iterator[str]:
    real = f'"{schema}"'
    if sqlite:
        yield "CREATE TEMP TABLE seen_project (id INTEGER PRIMARY KEY)"
        yield "CREATE TEMP TABLE own_account (id INTEGER PRIMARY KEY)"
        yield "CREATE TEMP TABLE shared_sweep (id INTEGER PRIMARY KEY)"
        seen, own = "SELECT id FROM temp.seen_project", "SELECT id FROM temp.own_account"
        shared = "SELECT id FROM temp.shared_sweep"
    else:  # set for the transaction; no project if nothing is set
        seen, own, shared = (
            f"SELECT unnest(coalesce(nullif(current_setting('{name}', true), ''), '{{}}')::int[])"
            for name in (_PROJECTS, _ACCOUNT, _SHARED)
        )
    for name, mine in _MINE.items():
        where = mine.format(seen=seen, own=own, shared=shared, real=real)
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE {where}"  # noqa: S608  names of ours
    for name in OF_SWEEPS:
        its = f"SELECT id FROM {real}.sweep WHERE project_id IN ({seen}) OR id IN ({shared})"  # noqa: S608
        yield f"CREATE TEMP VIEW {name} AS SELECT * FROM {real}.{name} WHERE sweep_id IN ({its})"  # noqa: S608


CONDUCTOR = "conductor"
"""The name of the only lease."""

_BUSY_MILLISECONDS = 30_000
_FENCE = sa.select(lease.c.fence).where(lease.c.name == CONDUCTOR)
_FENCE_LOCKED = _FENCE.with_for_update()


def _sqlite_connected(connection: Any, record: Any) -> None:
    # The driver would begin transactions late, and a change from reading to writing would deadlock.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_MILLISECONDS}", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    deadline = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:  # SQLite does not wait while two processes switch a new file
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    cursor.close()


def _sqlite_begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


_LOST_AFTER: Final = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}  # fmt: skip
"""libpq's settings that notice within 25 s that the machine of Postgres is gone, instead of the system's two hours. The
database's URL overrides them."""


class Database:
    """A database engine with two kinds of transactions: reads of one snapshot, and writes."""

    def __init__(self, url: str, password: Callable[[], str | None] = lambda: None) -> None:
        """`password`: asked at each new connection of a URL without a password, since it may change."""
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
        # 40 connections, one for each thread of the API.
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
        """The engine of restricted callers, which has its own connections."""
        with self._lock:
            if self._seeing is None:
                engine = self._engine(self.engine.url)
                install(engine)
                self._seeing = self._reading(engine)
            return self._seeing

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction that reads one snapshot of the rows that the caller may see; raises UnavailableError."""
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
        """Open a transaction that writes without a lease; raises UnavailableError."""
        with _unavailable(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection of the engine."""
        self.engine.dispose()
        if self._seeing is not None:
            self._seeing.dispose()


class FencedDatabase:
    """The database as the conductor uses it: writes are refused once another conductor has the lease."""

    def __init__(self, database: Database, fence: int) -> None:
        self._database, self.fence = database, fence

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a transaction that reads one snapshot, whoever has the lease; raises UnavailableError."""
        with self._database.reading() as connection:
            yield connection

    @contextmanager
    def holding(self) -> Iterator[sa.Connection]:
        """Open a transaction that reads; raises FencedError if another conductor has the lease."""
        with self._database.reading() as connection:
            _check_fence(connection, self.fence)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open a transaction that writes; raises FencedError if another conductor has the lease."""
        with self._database.writing() as connection:
            _check_fence(connection, self.fence, lock=True)
            yield connection


class Access:
    """The base class of database readers, and of writers that need no lease."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, query: sa.Executable) -> Sequence[sa.Row[Any]]:
        """All rows of one query, in its own transaction."""
        with self._database.reading() as connection:
            return connection.execute(query).all()

    def _row(self, query: sa.Executable) -> sa.Row[Any] | None:
        """The only row of a query, or `None`, in its own transaction."""
        with self._database.reading() as connection:
            return connection.execute(query).one_or_none()

    def _scalar(self, query: sa.Executable) -> Any:
        """The only value of a query, or `None`, in its own transaction."""
        with self._database.reading() as connection:
            return connection.scalar(query)

    def _exists(self, query: sa.Select[Any]) -> bool:
        """Whether a query has rows, in its own transaction."""
        with self._database.reading() as connection:
            return connection.execute(query.limit(1)).first() is not None


class FencedAccess:
    """The base class of writers that only the holder of the conductor's lease may use."""

    def __init__(self, database: FencedDatabase) -> None:
        self._database = database


def insertion(connection: sa.Connection, table: sa.Table) -> "sqlite.Insert | postgresql.Insert":
    """The INSERT statement of the database's dialect, which supports ON CONFLICT."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(connection: sa.Connection, table: sa.Table, keys: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Insert a row with `keys` and `values`, or set the values of the row with these keys."""
    adding = insertion(connection, table).values({**keys, **values})
    connection.execute(adding.on_conflict_do_update(index_elements=list(keys), set_=dict(values)))


def insert_missing(connection: sa.Connection, table: sa.Table, values: Mapping[str, Any]) -> None:
    """Insert a row unless a row with its keys exists."""
    connection.execute(insertion(connection, table).values(values).on_conflict_do_nothing())


def chunked(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split items into lists of at most `size`, since a statement of SQLite takes at most 32,766 parameters."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _check_fence(connection: sa.Connection, fence: int, *, lock: bool = False) -> None:
    """Raise FencedError unless the lease has this fence; with `lock`, it keeps it until the transaction ends."""
    row = connection.execute(_FENCE_LOCKED if lock else _FENCE).one_or_none()
    if row is None or row.fence != fence:
        raise FencedError(
            f"another conductor has taken the lease (its fence: {row.fence if row else 'none'}, ours is {fence})"
        )


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, PoolTimeoutError) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", None) if isinstance(cause, sqlite3.Error) else None
        if code is not None and (trouble := _FILE_TROUBLE.get(code & 0xFF)):
            raise UnavailableError(trouble) from error
        first = (str(cause).splitlines() or [type(error).__name__])[0]
        if isinstance(error, (OperationalError, InterfaceError, PoolTimeoutError)):
            # The database answers, but the statement exceeds its limits: waiting would not help.
            too_large = str(getattr(cause, "sqlstate", None) or "").startswith("54")
            if too_large or code == sqlite3.SQLITE_ERROR:
                raise
            raise UnavailableError(f"the database cannot be used: {first}") from error
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            raise UnavailableError(f"the database connection was lost: {first}") from error
        raise


_FILE_TROUBLE: Final = {
    sqlite3.SQLITE_FULL: "the database cannot be written: its disk is full",
    sqlite3.SQLITE_READONLY: "the database cannot be written: its file or its disk is read-only",
    sqlite3.SQLITE_IOERR: "the database cannot be used: its disk is full or broken",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened: its folder is missing, read-only or on a full disk",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged; stop the service and restore a backup",
    sqlite3.SQLITE_NOTADB: "the database file is damaged: it is no SQLite file; restore a backup",
}
