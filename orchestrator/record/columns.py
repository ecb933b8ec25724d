"""How values are stored in the database: times, JSON with floats that are not finite, and text."""

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

from orchestrator.spec.fields import finite
from workers.contract import Result, Select


class UtcTime(sa.TypeDecorator[datetime]):
    """A database column of times in UTC; reading adds the time zone, which SQLite does not keep."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a time to UTC before it is stored; raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Add the zone UTC to a time that was read."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Seconds(FunctionElement[float]):
    """SQL that converts a time column to seconds since 1970, which SQLite and Postgres can subtract and sum."""

    type = sa.Float(53)
    inherit_cache = True


class DatabaseSeconds(Seconds):
    """SQL for the seconds since 1970 by the database's clock.

    Leases use only this clock, since the clocks of hosts differ.
    """

    inherit_cache = True


@compiles(Seconds, "sqlite")
def _sqlite_seconds(element: Seconds, compiler: SQLCompiler, **kw: Any) -> str:
    at = compiler.process(element.clauses, **kw) or "'now'"
    return f"((julianday({at}) - 2440587.5) * 86400.0)"


@compiles(Seconds, "postgresql")
def _postgres_seconds(element: Seconds, compiler: SQLCompiler, **kw: Any) -> str:
    at = compiler.process(element.clauses, **kw) or "clock_timestamp()"
    return f"CAST(EXTRACT(EPOCH FROM {at}) AS DOUBLE PRECISION)"


_MAX_RESULT_BYTES: Final = 1_048_576


def finite_or_none(value: float) -> float | None:
    """The float, or `None` if it is NaN or infinite, which JSON in a database cannot hold."""
    return value if math.isfinite(value) else None


def number(value: float | None) -> float:
    """The float of a stored value: NaN for `None`. The inverse of `finite_or_none`."""
    return math.nan if value is None else value


def number_in(text: str) -> float | None:
    """The finite number that a text is, or `None`; `1_000`, which Python would read, is none."""
    return None if "_" in text else finite(text)


def selection_score(recipe: Mapping[str, Any], metrics: Mapping[str, float]) -> float | None:
    """The value of the metric that the recipe selects by; `None` if it is missing or not finite."""
    try:
        key = Select.model_validate(recipe.get("select", {})).key
    except ValidationError:
        return None
    value = metrics.get(key)
    return None if value is None else finite_or_none(value)


def dump_result(result: Result) -> dict[str, Any]:
    """A training's result as stored JSON: without metrics, and without curves if it exceeds 1 MiB with them."""
    dumped: dict[str, Any] = {
        "provenance": result.provenance,
        "artifacts": result.artifacts,
        "curves": {
            key: [(step, finite_or_none(value)) for step, value in points] for key, points in result.curves.items()
        },
    }
    if len(json.dumps(dumped)) > _MAX_RESULT_BYTES:
        dumped["curves"] = {}  # the reported points are stored anyway
    return dumped


_MAX_MESSAGE: Final = 2_000
"""Characters of a message about a failure or a refusal."""


def shortened(message: str) -> str:
    """An error or log message, cut to the length that the database keeps."""
    return storable(message)[:_MAX_MESSAGE]


def storable(text: str) -> str:
    """The text without characters that a database refuses: NUL, and halves of surrogate pairs."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
