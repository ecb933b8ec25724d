"""What one sweep says of the papers' numbers: each that a cell of its tables stands beside, and how it stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.publish.ledger.cell_protocol import CellProtocol
from orchestrator.publish.ledger.standing import Stance, stance
from orchestrator.publish.published import Number, PublishedTable, load
from orchestrator.publish.published.protocol import protocol_of
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.views.deadline import timely
from orchestrator.views.errors import NotFoundError
from orchestrator.views.ledger import LedgerEvidence
from orchestrator.views.outcomes import SweepOutcomes
from orchestrator.views.planned import Cell
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """One printed number and what a cell of a sweep says of it."""

    table: str  # such as SEC-T3
    position: int  # of the number in that table
    evidence: LedgerEvidence


def findings(outcomes: SweepOutcomes, catalog: Catalog, within: float) -> list[LedgerFinding]:
    """Every published number that the sweep's tables stand beside, whether or not there are runs of it."""
    cells = {cell.index: cell for cell in outcomes.cells}
    return [
        one for name in published_tables(outcomes.spec) for one in _of_table(outcomes, name, catalog, within, cells)
    ]


def published_tables(spec: Mapping[str, Any]) -> dict[str, PublishedTable]:
    """The tables of a spec that name one of a paper which is known, with that."""
    tables = spec.get("tables") or {}
    found = {}
    for name in tables:
        # Looked at before it is parsed: thousands of specs are looked through, and few name one.
        if tables[name].get("published") and (wanted := parse(spec, name).published) is not None:
            try:
                found[name] = load(wanted)
            except NotFoundError:  # of an old sweep: it is gone
                continue
    return found


def _of_table(
    outcomes: SweepOutcomes, name: str, catalog: Catalog, within: float, cells: Mapping[int, Cell]
) -> Iterator[LedgerFinding]:
    built = published_comparison.build(outcomes, name, catalog)
    paper = built.published
    if paper is None:
        return
    places = {id(number): at for at, number in enumerate(paper.numbers)}
    for column, place in _compared(built):
        if place.cell is None or place.quotation is None:
            continue
        number = place.quotation.number
        own = CellProtocol(outcomes, cells[place.cell], protocol_of(paper))
        stood = _stance(built, column, place, number, own, within)
        runs = place.statistic.n if place.statistic else 0
        yield LedgerFinding(paper.id, places[id(number)], LedgerEvidence(
            sweep=outcomes.sweep, sweep_name=outcomes.name, cell=place.cell, standing=stood.standing, why=stood.why,
            mean=place.statistic.mean if place.statistic else None,
            std=place.statistic.std if place.statistic else None, n=runs, difference=stood.difference,
            interval=stood.interval, expected=stood.expected, protocol=own.differences(column, number, runs),
        ))  # fmt: skip


def _compared(built: Table) -> Iterator[tuple[Column, TableCell]]:
    for panel in built.panels:
        for row in timely(panel.rows):
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind == "metric":
                    yield column, place


def _stance(built: Table, column: Column, place: TableCell, number: Number, own: CellProtocol, within: float) -> Stance:
    wanted = number.labels.get("dataset")
    if wanted and not own.tests_on(wanted):
        return Stance("not run", f"the cell trains on {own.data_set() or 'other data'}, not on {wanted}")
    summary = built.summary(column, place.cell or 0)
    if summary.status == "partial" and place.statistic is not None:
        return Stance("underpowered", "the cell has not ended: its number may still change")
    return stance(place.statistic, summary, number, within)
