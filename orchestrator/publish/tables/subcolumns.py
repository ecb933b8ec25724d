"""What becomes of a metric's column when published numbers are shown: another number in it, or a column beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.publish.tables.table_data import Column, Heading, Panel, TableCell
from orchestrator.views.outcomes import Statistic
from orchestrator.views.printing import printed

PAPER: Final = "paper"
REPRODUCTION: Final = "verdict"
"""The titles of the columns beside a metric's own."""

Second = Callable[[TableCell, str], TableCell]
"""From a cell, and what is printed where nothing is known, to the cell beside it."""


def difference(panel: Panel, missing: str) -> Panel:
    """Own mean - published number is printed in place of the own mean; a word in place of a number stays."""
    columns = tuple(
        replace(one, kind="difference", signed=True, better="none") if one.kind == "metric" else one
        for one in panel.columns
    )
    rows = (
        replace(row, cells=tuple(_difference(*pair, missing) for pair in zip(columns, row.cells, strict=True)))
        for row in panel.rows
    )
    return replace(panel, columns=columns, rows=tuple(rows))


def both(panel: Panel, missing: str) -> Panel:
    """The number that is printed in the paper beside each own one."""
    titled = {id(one): replace(one, kind="published", title=PAPER, better="none") for one in panel.columns}
    return _split(panel, titled, missing, _paper)


def reproduction(panel: Panel, missing: str) -> Panel:
    """Beside each own number how it compares with the published one."""
    titled = {id(one): replace(one, kind="verdict", title=REPRODUCTION, better="none") for one in panel.columns}
    return _split(panel, titled, missing, _reproduction)


def _difference(column: Column, cell: TableCell, missing: str) -> TableCell:
    if column.kind != "difference" or cell.statistic is None:
        return cell
    found = cell.quotation.reproduction.difference if cell.quotation else None
    if found is None:
        return replace(cell, text=missing, std=None, mark=None, statistic=None)
    text = printed(found, column.unit, column.decimals, signed=True)
    return replace(cell, text=text, std=None, center=None)


def _paper(cell: TableCell, missing: str) -> TableCell:
    if cell.quotation is None:
        return TableCell(missing, cell=cell.cell)
    number = cell.quotation.number
    if number.value is None:
        return TableCell(number.printed, note=cell.note, cell=cell.cell)
    mean, _, std = number.printed.partition("±")
    found = Statistic(number.value, number.std, 0)
    return TableCell(mean, std or None, number.bold, note=cell.note, statistic=found, cell=cell.cell)


def _reproduction(cell: TableCell, missing: str) -> TableCell:
    word = cell.quotation.reproduction.word if cell.quotation else None
    return TableCell(missing if word is None else word, note=cell.note, cell=cell.cell)


def _split(panel: Panel, beside: Mapping[int, Column], missing: str, second: Second) -> Panel:
    """A panel in which a second column stands beside that of each metric."""
    sizes = [2 if one.kind == "metric" else 1 for one in panel.columns]
    columns = [new for one, n in zip(panel.columns, sizes, strict=True) for new in (one, beside[id(one)])[:n]]
    rows = []
    for row in panel.rows:
        cells: list[TableCell] = []
        for cell, n in zip(row.cells, sizes, strict=True):
            # A word that stood over several columns stands in each: between them there is another column now.
            first = TableCell(missing) if n == 2 and row.quoted else replace(cell, span=1)
            cells += (first, second(cell, missing))[:n]
        rows.append(replace(row, cells=tuple(cells)))
    groups = tuple(_widened(level, sizes) for level in panel.groups)
    return Panel(groups=groups, columns=tuple(columns), rows=tuple(rows))


def _widened(level: Sequence[Heading], sizes: Sequence[int]) -> tuple[Heading, ...]:
    found, first = [], 0
    for heading in level:
        found.append(replace(heading, span=sum(sizes[first : first + heading.span])))
        first += heading.span
    return tuple(found)


VIEWS: Final[Mapping[str, Callable[[Panel, str], Panel]]] = {
    "difference": difference, "both": both, "verdict": reproduction,
}  # fmt: skip
"""What shows a panel whose cells know their published numbers, by the name of the view."""
