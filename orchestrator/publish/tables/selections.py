"""A table by two selections side by side: what stands over their columns, and the words that say what they are."""

from collections.abc import Sequence
from typing import Final

from orchestrator.publish.tables.headings import grouped
from orchestrator.publish.tables.layout import Point
from orchestrator.publish.tables.table_data import Column, Heading, Selected
from orchestrator.spec.table import TableSpec
from workers.contract import BEST_TEST, Select

FLATTERY: Final = "Test − validation"
"""What stands over the differences between the two."""

_TITLES: Final[dict[Selected, str]] = {"validation": "Selected on validation", "test": "Selected on test"}


def level(under: Sequence[Point], columns: Sequence[Column]) -> tuple[Heading, ...]:
    """The headings over columns, each under its point of the column axes, that say by what their numbers are chosen."""
    return grouped(under, columns, lambda column: FLATTERY if column.kind == "flattery" else _title(column))


def honest_key(column: Column, select: Select) -> str:
    """The result key of a metric at the honest choice, of a column that shows it at the other one."""
    return select.checkpoint + column.key.removeprefix(BEST_TEST)


def words(layout: TableSpec, metric: str) -> str:
    """What a caption says of the columns that are selected on the test split by `metric`; "" where there are none."""
    if "test" not in layout.selections:
        return ""
    if "validation" not in layout.selections:
        return f"Best checkpoint and candidate chosen by {metric} on the TEST split, so the numbers are optimistic."
    said = f"Under “{_TITLES['test']}” both are chosen by {metric} on the TEST split, so these numbers are optimistic."
    if layout.flattery:
        said += f" “{FLATTERY}” is how much that flatters; both come from the same trainings on the same classes."
    return said


def _title(column: Column) -> str:
    return _TITLES[column.selection] if column.selection else ""
