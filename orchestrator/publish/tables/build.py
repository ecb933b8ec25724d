"""Builds a table of a sweep in three passes: select, cells and words."""

from orchestrator.publish.tables.cells import cells
from orchestrator.publish.tables.select import select
from orchestrator.publish.tables.table_data import Numbers, Table
from orchestrator.publish.tables.words import words
from orchestrator.views.runs import SweepResults
from workers.catalog import Catalog


def build(
    results: SweepResults,
    name: str,
    catalog: Catalog,
    *,
    show_tuned: bool | None = None,
    numbers: Numbers = "own",
    doubts: bool = False,
) -> Table:
    """Builds the table `name` of the sweep's spec with these numbers; `show_tuned` overrides the spec's setting.

    Whatever it shows, its cells hold what is printed there, where the table names a published table. With `doubts` a
    bold number says where its lead may be noise. NotFoundError where there is no such table, ConflictError where it
    names no published table and `numbers` needs one.
    """
    selected = select(results, name, catalog, show_tuned=show_tuned, numbers=numbers)
    return words(cells(selected, doubts=doubts))
