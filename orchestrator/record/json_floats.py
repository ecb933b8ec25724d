"""Numbers on their way into the database: JSON and SQLite know no NaN, so that null stands for one."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from workers.contract import Result, Select

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
