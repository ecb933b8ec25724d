"""Rows that a table imports: other people's means, for which nothing is trained, and what tests they still allow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from orchestrator.publish.labels import metric_unit
from orchestrator.publish.statistics import half_interval, standard_error
from orchestrator.publish.tables.quoted_rows import free_sign
from orchestrator.publish.tables.significance import (
    IMPORTED_HIGHER,
    IMPORTED_LOWER,
    LEVEL,
    ImportedComparison,
    Word,
    corrected,
    tested,
)
from orchestrator.publish.tables.table_data import (
    Column,
    Heading,
    ImportedValue,
    LegendEntry,
    Panel,
    Table,
    TableCell,
    TableRow,
)
from orchestrator.spec.imported import ImportedNumber, ImportedRow
from orchestrator.spec.table import TableSpec
from orchestrator.views.outcomes import Statistic
from orchestrator.views.printing import printed
from workers.catalog import Catalog

_SIGNS: Final[tuple[tuple[Word, str], ...]] = (("higher", IMPORTED_HIGHER), ("lower", IMPORTED_LOWER))
Tests = Mapping[tuple[int, ...], ImportedComparison]
"""By panel, row and column."""


def imported(table: Table, layout: TableSpec, catalog: Catalog) -> Table:
    """The table of own numbers with the rows that its layout imports above them, and the words that say what they are.

    They bear a mark, and none of their numbers counts as one of the sweep: they are in no mean and no verdict, and
    compete for no bold.
    """
    if not layout.imported:
        return table
    sign = free_sign(table, [row.label for row in layout.imported])
    writer = _Writer(layout, len(table.stub), sign, catalog)
    panels = [writer.panel(panel) for panel in table.panels]
    if all(panel is before for panel, before in zip(panels, table.panels, strict=True)):
        return table
    tests = corrected({
        (p, r, c): test
        for p, panel in enumerate(panels)
        for r, c, test in _tests(panel, layout, table)
    })  # fmt: skip
    shown = tuple(_with_tests(p, panel, tests) for p, panel in enumerate(panels))
    return replace(
        table,
        panels=shown,
        caption=f"{table.caption} {_said(sign, [*tests.values()], _spread_of_their_own(shown, layout))}",
        legend=(*table.legend, LegendEntry(sign, _meaning(shown)), *_test_marks([*tests.values()])),
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the imported rows of one table."""

    layout: TableSpec
    stub: int  # columns of row headings
    sign: str
    catalog: Catalog

    def panel(self, panel: Panel) -> Panel:
        """The panel with those rows above that have a number in it; itself where there is none."""
        rows = [self._row(one, at, panel.columns) for at, one in enumerate(self.layout.imported)]
        shown = [row for row in rows if any(cell.numeric for cell in row.cells)]
        if not shown:
            return panel
        below = panel.rows and (replace(panel.rows[0], rule=0), *panel.rows[1:])
        return replace(panel, rows=(*shown, *below))

    def _row(self, one: ImportedRow, at: int, columns: Sequence[Column]) -> TableRow:
        texts = (f"{one.label}{self.sign}", *[""] * (self.stub - 1))[: self.stub]
        return TableRow(
            headings=tuple(Heading(text) for text in texts),
            texts=texts,
            labels={},
            rule=None,
            cells=tuple(self._cell(one, column) for column in columns),
            imported=at,
        )

    def _cell(self, row: ImportedRow, column: Column) -> TableCell:
        number = next((one for one in row.numbers if _stands_under(one, column)), None)
        if number is None:
            return TableCell(self.layout.missing)
        statistic = self._statistic(number, row)
        spread, lacks = self._spread(statistic)
        form = self.layout.deviation
        std = None
        if spread is not None and form is not None:
            decimals = column.decimals if form.decimals is None else form.decimals
            std = printed(spread, form.unit or column.unit, decimals)
        runs = (
            "of an unknown number of runs"
            if not statistic.n
            else "1 run"
            if statistic.n == 1
            else f"mean of {statistic.n} runs"
        )
        return TableCell(
            text=printed(statistic.mean, column.unit, column.decimals, signed=column.signed),
            std=std,
            note="; ".join(filter(None, (f"imported from {row.source}", runs, lacks))),
            imported=ImportedValue(row.label, row.source, statistic),
        )

    def _statistic(self, number: ImportedNumber, row: ImportedRow) -> Statistic:
        """As own numbers are: shares as fractions; n is 0 where it is not known."""
        scaled = row.unit == "percent" and metric_unit(number.metric, self.catalog) != "number"
        mean, std = ((_hundredth(one) if scaled and one is not None else one) for one in (number.mean, number.std))
        return Statistic(mean or 0.0, std, number.n or 0)

    def _spread(self, found: Statistic) -> tuple[float | None, str]:
        """What stands after the number in this table, and why it cannot be told."""
        wanted = self.layout.shown_spread
        if wanted in {"none", "std"}:
            return (found.std if wanted == "std" else None), ""
        value = standard_error(found) if wanted == "se" else half_interval(found)
        word = "standard error" if wanted == "se" else "interval"
        missing = "a single run" if found.n == 1 else "no n given" if not found.n else "no std given"
        return value, "" if value is not None else f"no {word}: {missing}"


def _hundredth(value: float) -> float:
    """The float that is nearest to the hundredth of what is written: 65.1 / 100 is 0.651."""
    return float(Decimal(repr(value)).scaleb(-2))


def _stands_under(number: ImportedNumber, column: Column) -> bool:
    if column.kind != "metric" or column.delta is not None or column.selection == "test":
        return False
    named = (column.key.rpartition("/")[2], column.split) == (number.metric, number.split)
    return named and all(column.labels.get(axis) == label for axis, label in number.of.items())


def _tests(panel: Panel, layout: TableSpec, table: Table) -> Iterator[tuple[int, int, ImportedComparison]]:
    """The row, the column and the test of each number that is to be compared with an own one."""
    for r, row in enumerate(panel.rows):
        against = None if row.imported is None else layout.imported[row.imported].against
        if not against:
            continue
        own = next((one for one in panel.rows if one.imported is None and _has(one, against)), None)
        for c, cell in enumerate(row.cells):
            if cell.imported is not None:
                if own is None:
                    yield r, c, ImportedComparison(", ".join(against.values()), why="no such own row")
                else:
                    beside = _settled(own.cells[c], panel.columns[c], table)
                    name = " ".join(text for text in own.texts if text)
                    yield r, c, tested(cell.imported.statistic, beside, name)


def _has(row: TableRow, labels: Mapping[str, str]) -> bool:
    return all(row.labels.get(axis) == label for axis, label in labels.items())


def _settled(cell: TableCell, column: Column, table: Table) -> Statistic | None:
    """An own number that will not change any more; none where it may."""
    if cell.cell is None or table.summary(column, cell.cell).status != "complete":
        return None
    return cell.statistic


def _with_tests(at: int, panel: Panel, tests: Tests) -> Panel:
    def shown(cell: TableCell, place: tuple[int, ...]) -> TableCell:
        test = tests.get(place)
        if test is None or cell.imported is None:
            return cell
        value = replace(cell.imported, test=test)
        return replace(cell, imported=value, note=f"{cell.note}; {test.said}", judged=test.sign)

    rows = (
        replace(row, cells=tuple(shown(cell, (at, r, c)) for c, cell in enumerate(row.cells)))
        for r, row in enumerate(panel.rows)
    )
    return replace(panel, rows=tuple(rows))


def _meaning(panels: Sequence[Panel]) -> str:
    """The sources of all rows, with what stands beside them and of how many runs they are."""
    rows: dict[str, dict[str, None]] = {}
    runs: dict[str, set[int]] = {}
    for row in (row for panel in panels for row in panel.rows if row.imported is not None):
        for value in (cell.imported for cell in row.cells if cell.imported is not None):
            rows.setdefault(value.source, {})[value.label] = None
            runs.setdefault(value.source, set()).add(value.statistic.n)
    if len(rows) == 1:
        source, counts = next(iter(runs.items()))
        return f"imported from {source} ({_counts(counts)}); not trained here"
    told = (f"{', '.join(labels)} from {source} ({_counts(runs[source])})" for source, labels in rows.items())
    return f"imported, {'; '.join(told)}; not trained here"


def _counts(found: set[int]) -> str:
    known = sorted(found - {0})
    if not known:
        return "n not given"
    said = f"n = {known[0]}" if len(known) == 1 else f"n = {known[0]} to {known[-1]}"
    return f"{said}, of some not given" if 0 in found else said


def _spread_of_their_own(panels: Sequence[Panel], layout: TableSpec) -> bool:
    """Whether a number of theirs has a spread that does not cover what those of own numbers do: test queries."""
    cells = (cell for panel in panels for row in panel.rows for cell in row.cells)
    return layout.covers_queries and any(cell.imported is not None and cell.std for cell in cells)


def _said(sign: str, tests: Sequence[ImportedComparison], spread: bool) -> str:
    """What the caption says of the rows, of a spread that is not the table's, and of their tests."""
    words = [f"Rows marked {sign} are imported: none of their numbers is our own, and none competes for bold."]
    if spread:
        words.append("Their spread is over their own runs alone, and covers no test queries.")
    count = sum(one.p is not None for one in tests)
    if count:
        number = "1 comparison" if count == 1 else f"{count} comparisons"
        words.append(
            "They are compared with own rows by Welch's two-sided t-test from mean, deviation and n: unpaired, for "
            f"numbers of runs that were fixed beforehand, p < {LEVEL} after Holm's correction for {number}."
        )
    reasons = dict.fromkeys(one.why for one in tests if one.p is None)
    if reasons:
        left = len(tests) - count
        words.append(f"{left} of {len(tests)} imported numbers could not be tested: {'; '.join(reasons)}.")
    return " ".join(words)


def _test_marks(tests: Sequence[ImportedComparison]) -> list[LegendEntry]:
    occurring = {one.word for one in tests}
    return [
        LegendEntry(sign, f"significantly {word} than the own row that it is compared with")
        for word, sign in _SIGNS
        if word in occurring
    ]
