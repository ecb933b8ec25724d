"""Copies a database's snapshot to a SQLite file, and between SQLite and Postgres."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from orchestrator.host.checks import sqlite_url
from orchestrator.record.database import Database
from orchestrator.record.migrations import difference, migrate, refuse_newer
from orchestrator.record.schema import metadata
from orchestrator.views.errors import ConflictError, DamagedError, UnavailableError

Password = Callable[[], str | None]
"""Gives the password of a URL without one."""
_ROWS: Final = 500
"""Rows in one statement."""


class _JsonText(sa.types.UserDefinedType[str]):
    """Postgres' JSON as text, which keeps the difference between JSON's null and NULL, and all digits."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "JSON"

    def column_expression(self, colexpr: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        return sa.cast(colexpr, sa.Text)

    def bind_expression(self, bindvalue: sa.BindParameter[str]) -> sa.ColumnElement[str]:
        return sa.cast(bindvalue, self)


def dump(url: str, file: Path, password: Password) -> None:
    """Copy a snapshot of the database into a new SQLite file of this release's schema, while others write to it.

    Raises UnavailableError, also if the database has another release's schema.
    """
    with closing(Database(url, password)) as source, closing(Database(sqlite_url(file))) as target:
        with source.reading() as reading, target.writing() as writing:
            if (other := difference(reading)) is not None:
                advice = "back it up with that release, or upgrade"
                raise UnavailableError(f"the database is of another release: {other}; {advice}")
            migrate(writing)
            _copy(reading, writing)
        with target.engine.connect() as connection:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")  # one file without a log
            (verdict,) = connection.exec_driver_sql("PRAGMA integrity_check").one()
    if verdict != "ok":
        raise UnavailableError(f"the copy of the database is damaged: {verdict}")


def require_empty(url: str, password: Password) -> None:
    """Raise ConflictError unless a database is empty, UnavailableError if it cannot be reached."""
    with closing(Database(url, password)) as target, target.reading() as reading:
        _require_empty(reading)


@contextmanager
def loading(file: Path, url: str, password: Password) -> Iterator[None]:
    """Copy a SQLite file into an empty database, in one transaction that is committed when the block ends.

    An older release's file is upgraded. Raises ConflictError unless the database is empty, and DamagedError.
    """
    with closing(Database(sqlite_url(file))) as source, closing(Database(url, password)) as target:
        with _whole(), source.writing() as connection:
            migrate(connection)
        with source.reading() as reading, target.writing() as writing:
            _require_empty(writing)
            migrate(writing)
            with _whole():
                _copy(reading, writing)
            yield


def require_restorable(file: Path) -> None:
    """Raise UnavailableError for a SQLite file of a newer release, DamagedError for a file that is no database."""
    with closing(Database(sqlite_url(file))) as source, _whole(), source.reading() as connection:
        refuse_newer(connection)


@contextmanager
def _whole() -> Iterator[None]:
    """Raise DamagedError for a file that is no database or has values of a wrong type, which SQLite allows."""
    try:
        yield
    except (sa.exc.DatabaseError, UnavailableError, ValueError, TypeError) as error:
        cause = error.__cause__ if isinstance(error, UnavailableError) else error
        if isinstance(error, UnavailableError) and not isinstance(cause, sa.exc.DatabaseError):
            raise  # the schema is a newer release's
        if isinstance(cause, sa.exc.OperationalError) and not isinstance(cause.orig, sqlite3.Error):
            raise  # the other database is away
        first = (str(getattr(cause, "orig", cause)).splitlines() or [type(cause).__name__])[0]
        raise DamagedError(f"the database of the backup cannot be copied: {first}; nothing was kept") from error


def _require_empty(connection: sa.Connection) -> None:
    if sa.inspect(connection).get_table_names():
        raise ConflictError("the target database is not empty; name an empty one")


def _copy(reading: sa.Connection, writing: sa.Connection) -> None:
    """Copy all rows, in the order of the foreign keys, and the counters of ids."""
    for table in reversed(metadata.sorted_tables):  # delete the rows that migrations insert
        if writing.execute(sa.select(sa.func.count()).select_from(table)).scalar_one():
            writing.execute(sa.delete(table))
    for table in metadata.sorted_tables:
        read, write = _plain(table, reading), _plain(table, writing)
        keys = [column for column in read.c if column.primary_key]
        rows = reading.execution_options(yield_per=_ROWS).execute(sa.select(read).order_by(*keys))
        copied = 0
        for some in rows.mappings().partitions(_ROWS):
            writing.execute(sa.insert(write), [dict(row) for row in some])
            copied += len(some)
        there = writing.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        if there != copied:
            raise DamagedError(f"only {there} of {copied} rows of the table {table.name} were copied; nothing was kept")
        if "id" in table.c and isinstance(table.c.id.type, sa.Integer):
            _count_on(writing, table, _counted(reading, table))


def _plain(table: sa.Table, connection: sa.Connection) -> sa.Table:
    """The table with JSON as text, so that values are copied unchanged."""
    text: sa.types.TypeEngine[Any] = sa.Text() if connection.dialect.name == "sqlite" else _JsonText()
    types = ((column, text if isinstance(column.type, sa.JSON) else column.type) for column in table.c)
    columns = (sa.Column(column.name, kind, primary_key=column.primary_key) for column, kind in types)
    return sa.Table(table.name, sa.MetaData(), *columns)


def _counted(connection: sa.Connection, table: sa.Table) -> int:
    """The highest id that the table ever gave, also to deleted rows: ids are not reused."""
    if connection.dialect.name == "sqlite":
        query = sa.text("SELECT max(seq) FROM sqlite_sequence WHERE name = :name")
        return int(connection.scalar(query, {"name": table.name}) or 0)
    name = connection.scalar(sa.select(sa.func.pg_get_serial_sequence(table.name, "id")))
    if name is None:
        return 0
    row = connection.exec_driver_sql(f"SELECT last_value, is_called FROM {name}").one()  # noqa: S608  of the catalog
    return int(row.last_value) if row.is_called else 0


def _count_on(connection: sa.Connection, table: sa.Table, last: int) -> None:
    highest = connection.scalar(sa.select(sa.func.max(table.c.id))) or 0
    last = max(last, highest)
    if not last:
        return
    if connection.dialect.name == "sqlite":
        values = {"name": table.name, "last": last}
        if table.dialect_options["sqlite"]["autoincrement"]:
            connection.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), values)
            connection.execute(sa.text("INSERT INTO sqlite_sequence VALUES (:name, :last)"), values)
        return
    name = sa.func.pg_get_serial_sequence(table.name, "id")
    connection.execute(sa.select(sa.func.setval(name, last)))


def snapshot(url: str, file: Path, password: Password) -> None:
    """Copy a snapshot of the database at a URL into a new SQLite file; raises UnavailableError.

    SQLite is copied by its online backup, Postgres row by row.
    """
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        dump(url, file, password)
        return
    if not Path(parsed.database).exists():
        raise UnavailableError(f"there is no database at {parsed.database}")
    try:
        with closing(sqlite3.connect(parsed.database)) as source, closing(sqlite3.connect(file)) as target:
            source.backup(target)  # in one step, since a write would restart it
            (verdict,) = target.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise UnavailableError(f"the database cannot be copied: {error}") from error
    if verdict != "ok":
        raise UnavailableError(f"the copy of the database is damaged: {verdict}")
