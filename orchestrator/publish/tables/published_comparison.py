"""Own numbers beside the published ones: a table whose cells know what the paper printed there, and the views of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from orchestrator.publish.papers import Number, PublishedTable, held_labels
from orchestrator.publish.tables import replica, subcolumns, table
from orchestrator.publish.tables.imported_rows import imported
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.quoted_rows import quoted
from orchestrator.publish.tables.reproduction import MEANING, Reproduction, Word, compare
from orchestrator.publish.tables.table_data import Column, LegendEntry, Numbers, Panel, Quotation, Table, TableCell
from orchestrator.spec.table import TableSpec
from orchestrator.views.errors import NotFoundError
from orchestrator.views.outcomes import CellSummary, SweepOutcomes
from orchestrator.views.planned import Labels
from orchestrator.views.printing import printed
from workers.catalog import Catalog

_SAYS: Final[Mapping[str, str]] = {
    "difference": "Shown is own mean minus the number printed in {id}, where both are there.",
    "both": "The columns headed paper hold what is printed in {id}.",
    "verdict": "Verdicts compare with the numbers printed in {id}; the tolerance is half the 95 % Student-t interval "
    "of the own mean, and half a printed digit.",
}

_QUOTES: Final = ("own", "both")
"""The views in which rows stand that are quoted or imported: the others are about own numbers."""

_FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "difference": {"bold": "none", "std": False, "against": None, "center": "mean"},  # a difference has none of these
    # A long word that stood across a cell's metrics would stand in each of their columns.
    "both": {"diverged": "diverged"},
    "verdict": {"diverged": "diverged"},
}
"""What a table's layout has otherwise in a view."""


def build(
    outcomes: SweepOutcomes,
    name: str,
    catalog: Catalog,
    *,
    show_tuned: bool | None = None,
    numbers: Numbers = "own",
    doubts: bool = False,
) -> Table:
    """The table `name` of the sweep's spec, showing those numbers.

    Whatever it shows, its cells hold what is printed there, where the table names a published one. NotFoundError where
    there is no such table, ConflictError where it names no published one and `numbers` needs it. With `doubts` a bold
    number says where its lead may be noise.
    """
    if numbers == "published":
        built = table.build(outcomes, name, catalog, show_tuned=show_tuned, numbers="published")
        layout = parse(outcomes.spec, name)
        return quoted(built, layout, replica.source(layout, name))
    if numbers in _FORM:
        outcomes = replace(outcomes, spec=_formed(outcomes.spec, name, _FORM[numbers]))
    own = table.build(outcomes, name, catalog, show_tuned=show_tuned, doubts=doubts)
    layout = parse(outcomes.spec, name)
    own = imported(own, layout, catalog) if numbers in _QUOTES else own
    paper = _paper(layout, name, numbers)
    if paper is None:
        return own
    held = {cell.index: held_labels(outcomes.spec, cell.labels, paper, catalog) for cell in outcomes.cells}
    quoting = _Quoting(paper, held, own.summaries)
    compared = replace(own, published=paper, panels=tuple(quoting.panel(panel) for panel in own.panels))
    if numbers in _QUOTES:
        compared = quoted(compared, layout, paper)
    return compared if numbers == "own" else _viewed(compared, paper, layout, numbers)


def _formed(spec: Mapping[str, Any], name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with some of a table's keys changed."""
    tables = spec.get("tables") or {}
    return {**spec, "tables": {**tables, **({name: {**tables[name], **form}} if name in tables else {})}}


def _paper(layout: TableSpec, name: str, numbers: Numbers) -> PublishedTable | None:
    """The published table that a layout names; own numbers do without one, or (in an old sweep) one that is gone."""
    if numbers != "own":
        return replica.source(layout, name)
    try:
        return replica.source(layout, name) if layout.published is not None else None
    except NotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Quoting:
    """Puts published numbers, and how they were reproduced, into the cells of a table of own numbers."""

    paper: PublishedTable
    held: Mapping[int, Labels]  # by cell
    summaries: Mapping[int, CellSummary]

    def panel(self, panel: Panel) -> Panel:
        """A panel whose metric cells know their published numbers."""
        rows = (
            replace(row, cells=tuple(self._cell(*pair) for pair in zip(panel.columns, row.cells, strict=True)))
            for row in panel.rows
        )
        return replace(panel, rows=tuple(rows))

    def _cell(self, column: Column, cell: TableCell) -> TableCell:
        if column.kind != "metric" or cell.cell is None:
            return cell
        number = replica.number(self.paper, self.held[cell.cell], column.name)
        if number is None:
            return cell
        found = compare(cell.statistic, self.summaries[cell.cell], number)
        words = "; ".join(one for one in (cell.note, _told(self.paper.id, number, found, column)) if one)
        return replace(cell, quotation=Quotation(number, found), note=words)


def _told(paper: str, number: Number, found: Reproduction, column: Column) -> str:
    tuned = ", ".join(f"{axis} = {label}" for axis, label in number.tuned.items())
    said = [f"{paper} prints {number.printed}" + (f" ({tuned})" if tuned else "")]
    said += [f"from {number.source}"] if number.source else []
    if found.difference is not None:
        said.append(f"difference {printed(found.difference, column.unit, column.decimals, signed=True)}")
    if found.tolerance is not None:
        said.append(f"tolerance {printed(found.tolerance, column.unit, column.decimals)}")
    return ", ".join((*said, *([found.word] if found.word else [])))


def _viewed(own: Table, paper: PublishedTable, layout: TableSpec, numbers: Numbers) -> Table:
    cells = (cell for panel in own.panels for row in panel.rows for cell in row.cells)
    words = {cell.quotation.reproduction.word for cell in cells if cell.quotation}
    known = {one.symbol for one in own.legend}
    meant = [LegendEntry(word, MEANING[word]) for word in get_args(Word) if word in words - known]
    return replace(
        own,
        panels=tuple(subcolumns.VIEWS[numbers](panel, layout.missing) for panel in own.panels),
        caption=f"{own.caption} {_SAYS[numbers].format(id=paper.id)}",
        notes=(*own.notes, *([f"{paper.id}: {paper.note}"] if paper.note else [])),
        legend=(*own.legend, *(meant if numbers == "verdict" else [])),
        numbers=numbers,
    )
