"""The numbers of a table under the names of their macros, each with the runs behind it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.publish.macros.macro_name import PREFIX, checked_prefix, macro_names
from orchestrator.publish.statistics import interval
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.views.errors import ConflictError
from orchestrator.views.macros import MacroNumber, MacroRun, MacroSource, MacrosView
from orchestrator.views.outcomes import CellSummary, Statistic, SweepOutcomes
from orchestrator.views.printing import printed
from orchestrator.views.provenance import TrialProvenance
from workers.catalog import Catalog

ONE_RUN = "one run"
NO_NUMBER = "no number"


@dataclass(frozen=True, slots=True)
class MacroTable:
    """A table as macros, and where each number is from."""

    view: MacrosView
    places: Mapping[str, tuple[CellSummary, str]]  # by the name of the macro: the cell shown, and the metric's key


def macros(outcomes: SweepOutcomes, uid: str, name: str, catalog: Catalog, prefix: str = PREFIX) -> MacroTable:
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
    view = MacrosView(
        sweep=outcomes.sweep, uid=uid, sweep_name=outcomes.name, table=name, prefix=prefix, caption=built.caption,
        numbers=numbers,
    )  # fmt: skip
    behind = {
        number.name: (built.summary(column, place.cell or 0), column.key)
        for number, (column, place) in zip(numbers, places, strict=True)
    }
    return MacroTable(view, behind)


def sources(table: MacroTable, provenance: Iterable[TrialProvenance]) -> list[MacroSource]:
    """What stands behind each macro; `provenance` is that of the sweep's trials."""
    shown = {
        (shown_cell.cell, shown_cell.candidate)
        for shown_cell, _ in table.places.values()
        if shown_cell.candidate is not None
    }
    runs: dict[tuple[int, int], list[TrialProvenance]] = {}
    for trial in provenance:
        if (place := (trial.outcome.cell, trial.outcome.candidate)) in shown:
            runs.setdefault(place, []).append(trial)
    behind = []
    for number in table.view.numbers:
        summary, key = table.places[number.name]
        own = runs.get((summary.cell, -1 if summary.candidate is None else summary.candidate), [])
        behind.append(
            MacroSource(
                number=number,
                selected=dict(summary.labels),
                candidates=summary.candidates,
                runs=[_run(one, key) for one in own],
            )
        )
    return behind


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


def _run(one: TrialProvenance, key: str) -> MacroRun:
    return MacroRun(
        trial=one.outcome.trial, labels=dict(one.outcome.repeat_labels), value=one.outcome.values.get(key),
        fingerprint=one.fingerprint, data_hash=one.data_hash, git_commit=one.commit, device=one.device,
        versions=dict(one.versions), seconds=one.seconds,
    )  # fmt: skip
