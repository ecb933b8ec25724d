"""The numbers of a table under the names of their macros."""

from collections.abc import Iterator, Mapping

from orchestrator.publish.macros.macro_name import PREFIX, checked_prefix, macro_names
from orchestrator.publish.statistics import interval
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.views.errors import ConflictError
from orchestrator.views.macros import MacroNumber, MacrosView
from orchestrator.views.outcomes import Statistic, SweepOutcomes
from orchestrator.views.printing import printed
from workers.catalog import Catalog

ONE_RUN = "one run"
NO_NUMBER = "no number"


def macros(outcomes: SweepOutcomes, uid: str, name: str, catalog: Catalog, prefix: str = PREFIX) -> MacrosView:
    """The table `name` as macros; NotFoundError where there is none, ConflictError where it has no number to name."""
    checked_prefix(prefix)
    built = published_comparison.build(outcomes, name, catalog)
    places = list(_places(built))
    if not places:
        raise ConflictError(f"table '{name}' of sweep {outcomes.sweep} has no cell with a metric, so no number to name")
    labels = {cell.index: cell.labels for cell in outcomes.cells}
    parts = (
        (name, *labels[cell.cell or 0].values(), column.name, *([f"on_{column.selection}"] if column.selection else []))
        for column, cell in places
    )
    numbers = [
        _number(one, labels[place.cell or 0], column, place, built.sweep)
        for one, (column, place) in zip(macro_names(prefix, parts), places, strict=True)
    ]
    return MacrosView(
        sweep=outcomes.sweep, uid=uid, sweep_name=outcomes.name, table=name, prefix=prefix, caption=built.caption,
        numbers=numbers,
    )  # fmt: skip


def _places(built: Table) -> Iterator[tuple[Column, TableCell]]:
    for panel in built.panels:
        for row in panel.rows:
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind == "metric" and place.cell is not None:
                    yield column, place


def _number(name: str, labels: Mapping[str, str], column: Column, place: TableCell, sweep: int) -> MacroNumber:
    statistic = place.statistic
    return MacroNumber(
        name=name, labels=dict(labels), metric=column.name, split=column.split, selection=column.selection or "",
        sweep=sweep, cell=place.cell or 0, value=place.text or NO_NUMBER, interval=_interval(statistic, column),
        std=_std(statistic, column), seeds=statistic.n if statistic else 0,
    )  # fmt: skip


def _interval(found: Statistic | None, column: Column) -> str:
    if found is None:
        return NO_NUMBER
    bounds = interval(found)
    if bounds is None:
        return ONE_RUN if found.n == 1 else NO_NUMBER
    low, high = (printed(bound, column.unit, column.decimals) for bound in bounds)
    return f"[{low}, {high}]"


def _std(found: Statistic | None, column: Column) -> str:
    if found is None or found.std is None:
        return ONE_RUN if found is not None and found.n == 1 else NO_NUMBER
    return printed(found.std, column.unit, column.decimals)
