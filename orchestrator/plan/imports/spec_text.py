"""Puts imported rows into the text of a spec; comments and order stay."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.plan.reading.document import parse
from orchestrator.plan.reading.edit import placed
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem, meant


def with_rows(text: bytes, table: str | None, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """`text` whose table (its first one by default) has these rows too; one of the same label and source is replaced.

    Raises InvalidSpecError where there is no such table, TooLargeError.
    """
    document = parse(text)
    tables = document.get("tables") if isinstance(document, Mapping) else None
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidSpecError([Problem("tables", "the spec names no table that could have rows; write one into it")])
    name = table if table is not None else next(iter(tables))
    if not isinstance(posted := tables.get(name), Mapping):
        raise InvalidSpecError([Problem(f"tables.{name}", f"there is no such table; {meant(str(name), tables)}")])
    known = posted.get("imported")
    new = {(one["label"], one["source"]) for one in rows}
    kept = [one for one in known if not _is_one_of(one, new)] if isinstance(known, list) else []
    return placed(text, ["tables", name, "imported"], [*kept, *rows])


def _is_one_of(row: Any, new: set[tuple[Any, Any]]) -> bool:
    return isinstance(row, Mapping) and (row.get("label"), row.get("source")) in new
