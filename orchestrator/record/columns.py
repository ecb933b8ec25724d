"""How values are stored: times, JSON with floats that are not finite, and text."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement

from workers.contract import Result, Select


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


MAX_RESULT_BYTES: Final = 1_048_576


def finite_or_none(value: float) -> float | None:
    """The value, or none where it is NaN or infinite."""
    return value if math.isfinite(value) else None


def number(value: float | None) -> float:
    """What `finite_or_none` kept; NaN for none."""
    return math.nan if value is None else value


def selection_score(recipe: Mapping[str, Any], metrics: Mapping[str, float]) -> float | None:
    """The metric that the recipe selects by, where the result has it as a number."""
    try:
        key = Select.model_validate(recipe.get("select", {})).key
    except ValidationError:
        return None
    value = metrics.get(key)
    return None if value is None else finite_or_none(value)


def dump_result(result: Result) -> dict[str, Any]:
    """What a result says beside its metrics; its curves are left out when it is over 1 MiB with them."""
    said: dict[str, Any] = {
        "provenance": result.provenance,
        "artifacts": result.artifacts,
        "curves": {
            key: [(step, finite_or_none(value)) for step, value in points] for key, points in result.curves.items()
        },
    }
    if len(json.dumps(said)) > MAX_RESULT_BYTES:
        said["curves"] = {}  # what was reported on the way is kept point by point
    return said


MAX_MESSAGE: Final = 2_000
"""Characters of what is said of a failure or a refusal."""


def storable(text: str) -> str:
    """The text without what a database refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
