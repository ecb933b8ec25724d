"""Rows that a table quotes from a printed one: other methods' numbers, for which nothing is trained."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.publish.papers import Number, PublishedTable
from orchestrator.publish.tables import replica
from orchestrator.publish.tables.reproduction import Reproduction
from orchestrator.publish.tables.table_data import (
    Column,
    Heading,
    LegendEntry,
    Panel,
    Quotation,
    Table,
    TableCell,
    TableRow,
)
from orchestrator.spec.table import QuotedRow, TableSpec
from orchestrator.views.outcomes import Statistic
from orchestrator.views.printing import printed

_SIGNS: Final = ("†", "‡", "§")
_SPREAD: Final = "±"


def quoted(table: Table, layout: TableSpec, paper: PublishedTable) -> Table:
    """The table with the rows that its layout quotes above its own, and the words that say what they are.

    In a table of own numbers they bear a mark, and none of them counts as a number of the sweep; where all numbers are
    the paper's they are rows as any others.
    """
    if not layout.quoted:
        return table
    own = table.numbers != "published"
    sign = free_sign(table) if own else ""
    writer = _Writer(paper, layout, len(table.stub), sign)
    built = replace(table, panels=tuple(writer.panel(panel) for panel in table.panels))
    if not own:
        return built
    where = f"{paper.id} ({paper.citation})" if paper.citation else paper.id
    return replace(
        built,
        caption=f"{table.caption} Rows marked {sign} are quoted from {where}; none of their numbers is our own.",
        legend=(*table.legend, LegendEntry(sign, _meaning(paper, writer.numbers(built)))),
    )


def free_sign(table: Table, labels: Sequence[str] = ()) -> str:
    """A mark for rows that are not the sweep's own, which stands beside no other row, and in none of `labels`."""
    taken = "".join((*labels, *(text for panel in table.panels for row in panel.rows for text in row.texts)))
    return next((one for one in _SIGNS if one not in taken), _SIGNS[-1])


def _meaning(paper: PublishedTable, numbers: Sequence[Number]) -> str:
    sources = list(dict.fromkeys(one.source for one in numbers if one.source))
    whence = f", which has them from {' and '.join(sources)}" if sources else ""
    return f"as printed in {paper.id}{whence}; not trained here"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the quoted rows of one table."""

    paper: PublishedTable
    layout: TableSpec
    stub: int  # columns of row headings
    sign: str  # behind the label of a row; empty where all numbers are the paper's

    def panel(self, panel: Panel) -> Panel:
        """The panel with those rows above that have a number in it."""
        rows = [self._row(one, panel.columns) for one in self.layout.quoted]
        shown = [row for row in rows if any(cell.numeric for cell in row.cells)]
        if not shown or not panel.rows:
            return replace(panel, rows=(*shown, *panel.rows))
        first, *others = panel.rows
        return replace(panel, rows=(*shown, replace(first, rule=0), *others))

    @staticmethod
    def numbers(table: Table) -> list[Number]:
        """What the quoted rows hold."""
        rows = (row for panel in table.panels for row in panel.rows if row.quoted)
        return [cell.quotation.number for row in rows for cell in row.cells if cell.quotation]

    def _row(self, one: QuotedRow, columns: Sequence[Column]) -> TableRow:
        texts = (f"{one.label}{self.sign}", *[""] * (self.stub - 1))[: self.stub]
        return TableRow(
            headings=tuple(Heading(text) for text in texts),
            texts=texts,
            labels=one.of,
            rule=None,
            cells=tuple(self._cells(one, columns)),
            quoted=True,
        )

    def _cells(self, one: QuotedRow, columns: Sequence[Column]) -> Iterator[TableCell]:
        for column in columns:
            found = None
            if column.kind == "metric" and column.selection != "test":
                found = replica.number(self.paper, {**column.labels, **one.of}, column.name)
            yield TableCell(self.layout.missing) if found is None else self._cell(found, column, bold=one.bold)

    def _cell(self, number: Number, column: Column, *, bold: bool) -> TableCell:
        mean, _, std = number.printed.partition(_SPREAD)
        if number.value is not None and number.unit != column.unit:
            mean, std = printed(number.value, column.unit, column.decimals, signed=column.signed), ""
        source = f", from {number.source}" if number.source else ""
        cell = TableCell(
            text=mean,
            std=std if std and self.layout.shown_spread != "none" else None,
            bold=bold and number.bold,
            note=f"{self.paper.id} prints {number.printed}{source}; nothing is trained for it",
            quotation=Quotation(number, Reproduction(None)),
        )
        if self.sign or number.value is None:
            return cell
        return replace(cell, statistic=Statistic(number.value, number.std, replica.UNKNOWN))
