"""Adds metrics to the text of a spec: to its recipe, and as columns to its tables; comments and order stay."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.plan.reading.document import parse
from orchestrator.plan.reading.edit import placed
from orchestrator.views.errors import InvalidSpecError
from workers.catalog import Problem


def with_metrics(text: bytes, spec: Mapping[str, Any], names: Sequence[str]) -> bytes:
    """`text` with these metrics, each once; `spec` is what it was read as, which has the metrics that it leaves out.

    Raises InvalidSpecError for a spec without tables, or whose base recipe is none, TooLargeError.
    """
    document = parse(text)
    tables = spec.get("tables") or {}
    if not tables or not isinstance(document.get("recipe"), Mapping):
        raise InvalidSpecError([Problem("tables", "the sweep has no table to which a column could be added")])
    recipe = document["recipe"]
    text = placed(text, ["recipe", "metrics"], _joined(recipe.get("metrics") or [], names))
    if not isinstance(document.get("tables"), Mapping):  # it says none: those are the usual ones
        text = placed(text, ["tables"], {name: {} for name in tables})
    for name in tables:
        posted = (parse(text)["tables"] or {}).get(name)
        if not isinstance(posted, Mapping):
            text = placed(text, ["tables", name], {})
            posted = {}
        shown = posted.get("metrics") or tables[name]["metrics"]
        text = placed(text, ["tables", name, "metrics"], _joined(shown, names))
    return text


def _joined(known: Sequence[Any], names: Sequence[str]) -> list[Any]:
    there = {name for one in known if (name := one if isinstance(one, str) else _tested(one))}
    return [*known, *(name for name in dict.fromkeys(names) if name not in there)]


def _tested(column: Mapping[str, Any]) -> str | None:
    """The metric whose own value on `test` a column shows; none of a difference, or of another split."""
    own = column.get("split", "test") == "test" and column.get("delta") is None
    return column.get("metric") if own else None
