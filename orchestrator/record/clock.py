"""Moments in the database: columns in UTC, and the database's own clock."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement


class UtcTime(sa.TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no time zone, so that it is put back on reading."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive times, which would be read as another moment elsewhere."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment with its zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class DatabaseSeconds(FunctionElement[float]):
    """Seconds since 1970 by the database's own clock, which alone judges leases: hosts' clocks differ."""

    type = sa.Float(53)
    inherit_cache = True


@compiles(DatabaseSeconds, "sqlite")
def _sqlite_seconds(element: DatabaseSeconds, compiler: SQLCompiler, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(DatabaseSeconds, "postgresql")
def _postgres_seconds(element: DatabaseSeconds, compiler: SQLCompiler, **kw: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


class Seconds(FunctionElement[float]):
    """A moment of a column as seconds since 1970: what can be subtracted and summed on both databases."""

    type = sa.Float(53)
    inherit_cache = True


@compiles(Seconds, "sqlite")
def _sqlite_seconds_of(element: Seconds, compiler: SQLCompiler, **kw: Any) -> str:
    return f"((julianday({compiler.process(element.clauses, **kw)}) - 2440587.5) * 86400.0)"


@compiles(Seconds, "postgresql")
def _postgres_seconds_of(element: Seconds, compiler: SQLCompiler, **kw: Any) -> str:
    return f"CAST(EXTRACT(EPOCH FROM {compiler.process(element.clauses, **kw)}) AS DOUBLE PRECISION)"
