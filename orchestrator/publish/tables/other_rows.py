"""Rows and columns beside a sweep's own numbers: those of a paper, quoted or imported from elsewhere."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from orchestrator.publish.aggregate import half_interval, selection, standard_error
from orchestrator.publish.labels import metric_unit
from orchestrator.publish.papers import Number, PublishedTable, held_labels, load
from orchestrator.publish.tables.reproduction import Reproduction
from orchestrator.publish.tables.table_data import (
    Column,
    Heading,
    ImportedValue,
    LegendEntry,
    Panel,
    Quotation,
    Table,
    TableCell,
    TableRow,
)
from orchestrator.publish.verdicts.significance import (
    IMPORTED_HIGHER,
    IMPORTED_LOWER,
    LEVEL,
    ImportedComparison,
    Word,
    holm,
    tested,
)
from orchestrator.spec.layouts import DELTA, ImportedNumber, ImportedRow, QuotedRow, TableSpec
from orchestrator.views.errors import ConflictError
from orchestrator.views.runs import Cell, CellSummary, Labels, Statistic, SweepOutcomes
from orchestrator.views.tables import printed
from workers.catalog import Catalog

UNKNOWN: Final = 0
"""The number of repeats of a printed mean: papers seldom say."""
_BY_SEC: Final = "_sec"
"""The end of the name of a metric that is another one by the rule of SEC's code."""


def source(layout: TableSpec, name: str) -> PublishedTable:
    """The printed table that a layout is filled from; ConflictError where it names none."""
    if layout.published is None:
        raise ConflictError(f"table '{name}' says nothing of a printed table; add `published: <name>` to it")
    return load(layout.published)


def summaries(outcomes: SweepOutcomes, layout: TableSpec, table: PublishedTable, catalog: Catalog) -> list[CellSummary]:
    """For each cell of the sweep what the printed table says of it; a cell that it does not have is empty."""
    checkpoint = selection(outcomes.spec).checkpoint
    found = []
    for cell in outcomes.cells:
        labels = held_labels(outcomes.spec, cell.labels, table, catalog)
        found.append(_summary(cell, dict(_numbers(labels, layout, table, checkpoint))))
    return found


def number(table: PublishedTable, labels: Labels, metric: str) -> Number | None:
    """What is printed for a cell; a variant, `nmi@geometric` or `nmi_sec`, is printed as what it is a variant of.

    Papers that test on several sets print each as a data set: `lfw:accuracy` is the accuracy on LFW.
    """
    place, colon, tested = metric.partition(":")
    if colon and f"{place}:" not in {DELTA, "separated:"}:
        return number(table, {**labels, "dataset": place}, tested)
    found = table.find(labels, metric)
    stem, at, cut = metric.partition("@")
    if found is None and stem.endswith(_BY_SEC):
        return table.find(labels, f"{stem.removesuffix(_BY_SEC)}{at}{cut}")
    return table.find(labels, stem) if found is None and cut.isalpha() and len(cut) > 1 else found


def _numbers(labels: Labels, layout: TableSpec, table: PublishedTable, checkpoint: str) -> Iterator[tuple[str, Number]]:
    """What is printed for a cell, by the key under which its columns look: a difference goes by its own name."""
    for column in layout.metric_columns:
        if (found := number(table, labels, column.name)) is not None:
            yield column.name if column.delta else column.key(checkpoint), found


def _summary(cell: Cell, numbers: Mapping[str, Number]) -> CellSummary:
    values = {key: Statistic(one.value, one.std, UNKNOWN) for key, one in numbers.items() if one.value is not None}
    return CellSummary(
        cell=cell.index,
        status="diverged" if numbers and not values else "complete",
        candidate=0 if values else None,
        labels=next((one.tuned for one in numbers.values()), {}),
        selection_key="",
        score=None,
        metrics=values,
        candidates=UNKNOWN,
    )


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
    writer = _QuotedWriter(paper, layout, len(table.stub), sign)
    built = replace(table, panels=tuple(writer.panel(panel) for panel in table.panels))
    if not own:
        return built
    where = f"{paper.id} ({paper.citation})" if paper.citation else paper.id
    return replace(
        built,
        caption=f"{table.caption} Rows marked {sign} are quoted from {where}; none of their numbers is our own.",
        legend=(*table.legend, LegendEntry(sign, _quoted_meaning(paper, writer.numbers(built)))),
    )


def free_sign(table: Table, labels: Sequence[str] = ()) -> str:
    """A mark for rows that are not the sweep's own, which stands beside no other row, and in none of `labels`."""
    taken = "".join((*labels, *(text for panel in table.panels for row in panel.rows for text in row.texts)))
    return next((one for one in _SIGNS if one not in taken), _SIGNS[-1])


def _quoted_meaning(paper: PublishedTable, numbers: Sequence[Number]) -> str:
    sources = list(dict.fromkeys(one.source for one in numbers if one.source))
    whence = f", which has them from {' and '.join(sources)}" if sources else ""
    return f"as printed in {paper.id}{whence}; not trained here"


@dataclass(frozen=True, slots=True)
class _QuotedWriter:
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
                found = number(self.paper, {**column.labels, **one.of}, column.name)
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
        return replace(cell, statistic=Statistic(number.value, number.std, UNKNOWN))


_DIRECTIONS: Final[tuple[tuple[Word, str], ...]] = (("higher", IMPORTED_HIGHER), ("lower", IMPORTED_LOWER))
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
    writer = _ImportedWriter(layout, len(table.stub), sign, catalog)
    panels = [writer.panel(panel) for panel in table.panels]
    if all(panel is before for panel, before in zip(panels, table.panels, strict=True)):
        return table
    tests: Tests = holm({
        (p, r, c): test
        for p, panel in enumerate(panels)
        for r, c, test in _tests(panel, layout, table)
    })  # fmt: skip
    shown = tuple(_with_tests(p, panel, tests) for p, panel in enumerate(panels))
    return replace(
        table,
        panels=shown,
        caption=f"{table.caption} {_said(sign, [*tests.values()], _spread_of_their_own(shown, layout))}",
        legend=(*table.legend, LegendEntry(sign, _imported_meaning(shown)), *_test_marks([*tests.values()])),
    )


@dataclass(frozen=True, slots=True)
class _ImportedWriter:
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


def _imported_meaning(panels: Sequence[Panel]) -> str:
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
        for word, sign in _DIRECTIONS
        if word in occurring
    ]


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
