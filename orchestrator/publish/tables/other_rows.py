"""Rows and columns next to a sweep's own numbers, quoted from a paper or imported from elsewhere, and their words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, get_args

from orchestrator.publish.aggregate import half_interval, interval, standard_error
from orchestrator.publish.labels import metric_facts
from orchestrator.publish.papers import PublishedTable, completed_labels
from orchestrator.publish.tables.select import UNKNOWN, Selection, printed_number
from orchestrator.publish.tables.table_data import (
    Column,
    Heading,
    ImportedValue,
    LegendEntry,
    Panel,
    Place,
    Quotation,
    TableCell,
    TableRow,
    Word,
    changed,
    places,
    split,
)
from orchestrator.publish.verdicts.significance import (
    IMPORTED_HIGHER,
    IMPORTED_LOWER,
    LEVEL,
    Comparison,
    ImportedComparison,
    holm,
    tested,
)
from orchestrator.spec.layouts import ImportedNumber, ImportedRow, QuotedRow, Spread
from orchestrator.views.evidence import PublishedNumber
from orchestrator.views.runs import CellSummary, Labels, Statistic
from orchestrator.views.tables import printed, printed_spread
from workers.catalog import Catalog

_SIGNS: Final = ("†", "‡", "§")
_SPREAD: Final = "±"


@dataclass(frozen=True, slots=True)
class OtherRows:
    """The panels of a table after adding rows and columns that are not the sweep's own, such as quoted rows."""

    panels: tuple[Panel, ...]
    sources: tuple[str, ...] = ()  # where the paper has the numbers of quoted rows from, if they are not its own
    quoted: str = ""  # the sign behind the headings of quoted rows; empty where there are none, or only such rows
    imported: str = ""  # the sign behind the headings of imported rows; empty where there are none


@dataclass(frozen=True, slots=True)
class Body:
    """The printed cells of a table, and the data from which its caption, notes and legend are made."""

    selected: Selection
    stub: tuple[str, ...]  # the titles of the row headings
    rows: Sequence[str]  # the names of the row axes that have headings, in running text
    points: Sequence[tuple[str, ...]]  # each point of the column axes in running text
    own: tuple[Panel, ...]  # what a caption is about: the panels without other rows and columns
    block: frozenset[str] | None  # the axes of a block, of which the best is bold; None means that nothing is bold
    comparisons: Sequence[Comparison]  # of cells with their baselines
    usual: int | None  # the number of runs that most cells have
    others: OtherRows


def with_other_rows(selected: Selection, panels: tuple[Panel, ...], stub: int) -> OtherRows:
    """Adds imported and quoted rows above the own rows of a table, and the paper's numbers that it asks for.

    `stub` is the number of columns of row headings. None of the added numbers counts as a number of the sweep: they
    are in no mean and no verdict, and do not compete for bold. A table of differences or of words on own numbers has
    no such rows.
    """
    layout, numbers = selected.layout, selected.numbers
    paper = selected.paper or selected.printed
    imported = quoted = ""
    sources: dict[str | None, None] = {}
    if layout.imported and numbers in {"own", "both"}:
        sign = _free_sign(panels, [row.label for row in layout.imported])
        panels, imported = _with_imported(panels, selected, sign, stub)
    if selected.paper is not None:
        panels = _with_quotations(panels, selected, selected.paper)
    if paper is not None and layout.quoted and numbers in {"own", "both", "published"}:
        quoted = "" if selected.printed else _free_sign(panels)
        panels = tuple(_above(panel, _quoted_rows(selected, paper, panel, quoted, stub)) for panel in panels)
        cells = (cell for _, row, _, cell in places(panels) if row.quoted)
        sources = dict.fromkeys(cell.quotation.number.source for cell in cells if cell.quotation)
    if numbers in _VIEWS:
        panels = tuple(_VIEWS[numbers](panel, layout.missing) for panel in panels)
    return OtherRows(panels, tuple(filter(None, sources)), quoted, imported)


def _free_sign(panels: Sequence[Panel], labels: Sequence[str] = ()) -> str:
    """A mark for rows that are not the sweep's own, which stands next to no other row, and in none of `labels`."""
    taken = "".join((*labels, *(text for panel in panels for row in panel.rows for text in row.texts)))
    return next((one for one in _SIGNS if one not in taken), _SIGNS[-1])


def _row(label: str, stub: int, cells: Iterable[TableCell], labels: Labels, imported: int | None = None) -> TableRow:
    """A quoted or imported row, with its label in the first of the stub's columns."""
    texts = (label, *[""] * (stub - 1))[:stub]
    headings = tuple(Heading(text) for text in texts)
    return TableRow(headings, texts, labels, rule=None, cells=tuple(cells), quoted=imported is None, imported=imported)


def _above(panel: Panel, rows: Iterable[TableRow]) -> Panel:
    """The panel with those of the rows above it that have a number, and a rule between."""
    shown = [row for row in rows if any(cell.numeric for cell in row.cells)]
    if not shown:
        return panel
    own = panel.rows and (replace(panel.rows[0], rule=0), *panel.rows[1:])
    return replace(panel, rows=(*shown, *own))


def _with_quotations(panels: Sequence[Panel], selected: Selection, paper: PublishedTable) -> tuple[Panel, ...]:
    """The panels whose metric cells know what the paper prints for them, and how that was reproduced."""
    results = selected.results
    held = {
        cell.index: completed_labels(results.spec, cell.labels, paper, selected.names.parts) for cell in results.cells
    }

    def change(_: Place, column: Column, cell: TableCell) -> TableCell:
        if column.kind != "metric" or cell.cell is None:
            return cell
        number = printed_number(paper, held[cell.cell], column.name)
        if number is None:
            return cell
        found = compare(cell.statistic, selected.summaries[cell.cell], number)
        return replace(
            cell, quotation=found, note="; ".join(filter(None, (cell.note, _quotation_note(paper.id, found, column))))
        )

    return changed(panels, change)


def compare(own: Statistic | None, summary: CellSummary, number: PublishedNumber) -> Quotation:
    """The printed number with the own number of a cell: status and difference; no difference if either is missing."""
    if own is None:
        if summary.status == "diverged":
            return Quotation(number, "reproduced" if number.value is None else "diverged")
        return Quotation(number, "failed" if summary.status == "failed" else "not run")
    if number.value is None:
        return Quotation(number)
    difference = own.mean - number.value
    bounds = interval(own)
    if bounds is None:
        return Quotation(number, "no spread", difference)
    tolerance = (bounds[1] - bounds[0]) / 2 + number.rounding
    # Equal numbers differ in the last bits once they went through percent.
    word: Word = "reproduced" if abs(difference) <= tolerance + 1e-12 else "above" if difference > 0 else "below"
    return Quotation(number, word, difference, tolerance)


def _quotation_note(paper: str, found: Quotation, column: Column) -> str:
    number = found.number
    tuned = ", ".join(f"{axis} = {label}" for axis, label in number.tuned.items())
    parts = [f"{paper} prints {number.printed}" + (f" ({tuned})" if tuned else "")]
    parts += [f"from {number.source}"] if number.source else []
    if found.difference is not None:
        parts.append(f"difference {printed(found.difference, column.unit, column.decimals, signed=True)}")
    if found.tolerance is not None:
        parts.append(f"tolerance {printed(found.tolerance, column.unit, column.decimals)}")
    return ", ".join((*parts, *([found.word] if found.word else [])))


def _quoted_rows(selected: Selection, paper: PublishedTable, panel: Panel, sign: str, stub: int) -> Iterator[TableRow]:
    """The rows of the paper that the layout quotes; without a sign, where all numbers are the paper's.

    Where the table shows printed numbers anyway, a row that own cells repeat is left out.
    """
    repeated = [row.labels.items() for row in panel.rows] if selected.printed or selected.numbers != "own" else []
    for row in selected.layout.quoted:
        if any(row.of.items() <= labels for labels in repeated):
            continue
        cells = (_quoted_cell(selected, paper, row, column) for column in panel.columns)
        yield _row(f"{row.label}{sign}", stub, cells, row.of)


def _quoted_cell(selected: Selection, paper: PublishedTable, row: QuotedRow, column: Column) -> TableCell:
    number = None
    if column.kind == "metric" and column.selection != "test":
        number = printed_number(paper, {**column.labels, **row.of}, column.name)
    if number is None:
        return TableCell(selected.layout.missing)
    mean, _, std = number.printed.partition(_SPREAD)
    if number.value is not None and number.unit != column.unit:
        mean, std = printed(number.value, column.unit, column.decimals, signed=column.signed), ""
    source = f", from {number.source}" if number.source else ""
    # Where all numbers are the paper's, a quoted number counts as a number of the table.
    statistic = None if selected.paper or number.value is None else Statistic(number.value, number.std, UNKNOWN)
    return TableCell(
        text=mean,
        std=std if std and selected.layout.shown_spread != "none" else None,
        bold=row.bold and bool(number.bold),
        note=f"{paper.id} prints {number.printed}{source}; nothing is trained for it",
        statistic=statistic,
        quotation=Quotation(number),
    )


def _with_imported(
    panels: tuple[Panel, ...], selected: Selection, sign: str, stub: int
) -> tuple[tuple[Panel, ...], str]:
    """The panels with the imported rows and how they compare with own rows, and the sign of these rows."""
    shown = tuple(_above(panel, _imported_rows(selected, panel, sign, stub)) for panel in panels)
    if not any(row.imported is not None for panel in shown for row in panel.rows):
        return panels, ""
    tests = holm(dict(_tests(shown, selected)))

    def change(place: Place, _: Column, cell: TableCell) -> TableCell:
        test = tests.get(place)
        if test is None or cell.imported is None:
            return cell
        imported = replace(cell.imported, test=test)
        return replace(cell, imported=imported, note=f"{cell.note}; {test.summary}", judged=test.sign)

    return changed(shown, change), sign


def _imported_rows(selected: Selection, panel: Panel, sign: str, stub: int) -> Iterator[TableRow]:
    for at, row in enumerate(selected.layout.imported):
        cells = (_imported_cell(selected, row, column) for column in panel.columns)
        yield _row(f"{row.label}{sign}", stub, cells, {}, at)


def _imported_cell(selected: Selection, row: ImportedRow, column: Column) -> TableCell:
    number = next((one for one in row.numbers if _stands_under(one, column)), None)
    if number is None:
        return TableCell(selected.layout.missing)
    statistic = _imported_statistic(number, row, selected.names.parts)
    spread, lacks = _imported_spread(statistic, selected.layout.shown_spread)
    n = statistic.n
    runs = "of an unknown number of runs" if not n else "1 run" if n == 1 else f"mean of {n} runs"
    return TableCell(
        text=printed(statistic.mean, column.unit, column.decimals, signed=column.signed),
        std=printed_spread(spread, column.unit, column.decimals, selected.layout.deviation),
        note="; ".join(filter(None, (f"imported from {row.source}", runs, lacks))),
        imported=ImportedValue(row.label, row.source, statistic),
    )


def _stands_under(number: ImportedNumber, column: Column) -> bool:
    if not column.plain or column.selection == "test":
        return False
    named = (column.key.rpartition("/")[2], column.split) == (number.metric, number.split)
    return named and number.of.items() <= column.labels.items()


def _imported_statistic(number: ImportedNumber, row: ImportedRow, parts: Catalog) -> Statistic:
    """An imported number as own numbers are: shares as fractions; n is 0 where it is not known."""
    scaled = row.unit == "percent" and metric_facts(number.metric, parts).unit != "number"
    mean, std = (
        # The float that is nearest to the hundredth of what is written: 65.1 / 100 is 0.651.
        float(Decimal(repr(one)).scaleb(-2)) if scaled and one is not None else one
        for one in (number.mean, number.std)
    )
    return Statistic(mean or 0.0, std, number.n or 0)


def _imported_spread(found: Statistic, shown: Spread) -> tuple[float | None, str]:
    """The spread that this table prints after the number, and why it has no spread."""
    if shown in {"none", "std"}:
        return (found.std if shown == "std" else None), ""
    value = standard_error(found) if shown == "se" else half_interval(found)
    word = "standard error" if shown == "se" else "interval"
    missing = "a single run" if found.n == 1 else "no n given" if not found.n else "no std given"
    return value, "" if value is not None else f"no {word}: {missing}"


def _tests(panels: Sequence[Panel], selected: Selection) -> Iterator[tuple[Place, ImportedComparison]]:
    """The test of each number that is to be compared with an own number."""
    for place, row, column, cell in places(panels):
        against = None if row.imported is None else selected.layout.imported[row.imported].against
        if not against or cell.imported is None:
            continue
        own = next(
            (one for one in panels[place[0]].rows if one.imported is None and against.items() <= one.labels.items()),
            None,
        )
        if own is None:
            yield place, ImportedComparison(", ".join(against.values()), why="no such own row")
        else:
            name = " ".join(text for text in own.texts if text)
            yield place, tested(cell.imported.statistic, _settled(own.cells[place[2]], column, selected), name)


def _settled(cell: TableCell, column: Column, selected: Selection) -> Statistic | None:
    """An own number that will not change any more; None where it may."""
    if cell.cell is None or selected.shown[column.selection][cell.cell].status != "complete":
        return None
    return cell.statistic


def _difference(panel: Panel, missing: str) -> Panel:
    """Own mean - published number is printed in place of the own mean; a word in place of a number stays."""

    def change(_: Place, column: Column, cell: TableCell) -> TableCell:
        if column.kind != "metric" or cell.statistic is None:
            return cell
        found = cell.quotation.difference if cell.quotation else None
        if found is None:
            return replace(cell, text=missing, std=None, mark=None, statistic=None)
        return replace(cell, text=printed(found, column.unit, column.decimals, signed=True), std=None, center=None)

    columns = tuple(
        replace(one, kind="difference", signed=True, better="none") if one.kind == "metric" else one
        for one in panel.columns
    )
    return replace(changed([panel], change)[0], columns=columns)


def _both(panel: Panel, missing: str) -> Panel:
    """The number that is printed in the paper next to each own number."""

    def paper(cell: TableCell) -> TableCell:
        if cell.quotation is None:
            return TableCell(missing, cell=cell.cell)
        number = cell.quotation.number
        if number.value is None:
            return TableCell(number.printed, note=cell.note, cell=cell.cell)
        mean, _, std = number.printed.partition(_SPREAD)
        found = Statistic(number.value, number.std, UNKNOWN)
        return TableCell(mean, std or None, bool(number.bold), note=cell.note, statistic=found, cell=cell.cell)

    return _doubled(panel, lambda one: replace(one, kind="published", title="paper", better="none"), paper, missing)


def _verdict(panel: Panel, missing: str) -> Panel:
    """A word next to each own number on how it compares with the published number."""

    def word(cell: TableCell) -> TableCell:
        found = cell.quotation.word if cell.quotation else None
        return TableCell(missing if found is None else found, note=cell.note, cell=cell.cell)

    return _doubled(panel, lambda one: replace(one, kind="verdict", title="verdict", better="none"), word, missing)


def _doubled(
    panel: Panel, column: Callable[[Column], Column], second: Callable[[TableCell], TableCell], missing: str
) -> Panel:
    """A panel in which a second column stands next to the column of each metric."""
    columns = [(one, column(one)) if one.kind == "metric" else (one,) for one in panel.columns]
    rows = []
    for row in panel.rows:
        cells: list[TableCell] = []
        for own, cell in zip(panel.columns, row.cells, strict=True):
            is_metric = own.kind == "metric"
            # A word that stood over several columns stands in each: between them there is another column now.
            cells.append(TableCell(missing) if is_metric and row.quoted else replace(cell, span=1))
            cells += [second(cell)] if is_metric else []
        rows.append(cells)
    return split(panel, columns, rows)


_VIEWS: Final[Mapping[str, Callable[[Panel, str], Panel]]] = {
    "difference": _difference,
    "both": _both,
    "verdict": _verdict,
}
"""How a panel whose cells know their published numbers shows them, by the name of the view."""

# Words


_MEANING: Final[Mapping[Word, str]] = {
    "reproduced": "own and published number differ by no more than the tolerance, or the loss diverged in both",
    "above": "the own mean is higher by more than the tolerance",
    "below": "the own mean is lower by more than the tolerance",
    "no spread": "a single run, or a difference of two cells: no standard error to judge by",
    "not run": "no own number yet",
    "failed": "no own number, since no candidate finished in every repeat",
    "diverged": "no own number, since the loss became NaN in every candidate",
}
_VIEW_NOTES: Final[Mapping[str, str]] = {
    "difference": "Shown is own mean minus the number printed in {id}, where both are there.",
    "both": "The columns headed paper hold what is printed in {id}.",
    "verdict": "Verdicts compare with the numbers printed in {id}; the tolerance is half the 95 % Student-t interval "
    "of the own mean, and half a printed digit.",
}
"""The note below a table on its numbers, by what it shows."""


def _imported_tests(body: Body) -> list[ImportedComparison]:
    imported = (cell.imported for _, _, _, cell in places(body.others.panels))
    return [one.test for one in imported if one is not None and one.test is not None]


def imported_notes(body: Body) -> Iterator[str]:
    """Notes below a table on its imported rows, their differing spreads, and their tests."""
    if not body.others.imported:
        return
    sign = body.others.imported
    yield f"Rows marked {sign} are imported: none of their numbers is our own, and none competes for bold."
    if body.selected.layout.covers_queries and any(
        cell.imported is not None and cell.std for _, _, _, cell in places(body.others.panels)
    ):
        yield "Their spread is over their own runs alone, and covers no test queries."
    found = _imported_tests(body)
    if count := sum(one.p is not None for one in found):
        number = "1 comparison" if count == 1 else f"{count} comparisons"
        yield (
            "They are compared with own rows by Welch's two-sided t-test from mean, deviation and n: unpaired, for "
            f"numbers of runs that were fixed beforehand, p < {LEVEL} after Holm's correction for {number}."
        )
    if reasons := dict.fromkeys(one.why for one in found if one.p is None):
        left = len(found) - count
        yield f"{left} of {len(found)} imported numbers could not be tested: {'; '.join(reasons)}."


def imported_legend(body: Body) -> Iterator[LegendEntry]:
    """Legend entries for the sign of imported rows with their sources, and for the marks of their tests."""
    if not body.others.imported:
        return
    labels: dict[str, dict[str, None]] = {}
    runs: dict[str, set[int]] = {}
    for value in (cell.imported for _, _, _, cell in places(body.others.panels) if cell.imported is not None):
        labels.setdefault(value.source, {})[value.label] = None
        runs.setdefault(value.source, set()).add(value.statistic.n)
    if len(labels) == 1:
        what = "".join(f"imported from {source} ({_numbers_of_runs(n)})" for source, n in runs.items())
    else:
        each = (
            f"{', '.join(rows)} from {source} ({_numbers_of_runs(runs[source])})" for source, rows in labels.items()
        )
        what = f"imported, {'; '.join(each)}"
    yield LegendEntry(body.others.imported, f"{what}; not trained here")
    occurring = {one.word for one in _imported_tests(body)}
    for word, sign in (("higher", IMPORTED_HIGHER), ("lower", IMPORTED_LOWER)):
        if word in occurring:
            yield LegendEntry(sign, f"significantly {word} than the own row that it is compared with")


def _numbers_of_runs(found: set[int]) -> str:
    known = sorted(found - {0})
    if not known:
        return "n not given"
    text = f"n = {known[0]}" if len(known) == 1 else f"n = {known[0]} to {known[-1]}"
    return f"{text}, of some not given" if 0 in found else text


def paper_notes(body: Body) -> Iterator[str]:
    """Notes below a table on its quoted rows, and on printed numbers next to own numbers."""
    paper, numbers = body.selected.paper, body.selected.numbers
    if paper is not None and body.others.quoted:
        yield f"Rows marked {body.others.quoted} are quoted from {paper.cited}; none of their numbers is our own."
    if paper is not None and numbers in _VIEW_NOTES:
        yield _VIEW_NOTES[numbers].format(id=paper.id)
        yield f"{paper.id}: {paper.note}" if paper.note else ""


def paper_legend(body: Body) -> Iterator[LegendEntry]:
    """Legend entries for the sign of quoted rows with their sources, and for the words on own numbers."""
    paper, sources = body.selected.paper, body.others.sources
    if paper is not None and body.others.quoted:
        whence = f", which has them from {' and '.join(sources)}" if sources else ""
        yield LegendEntry(body.others.quoted, f"as printed in {paper.id}{whence}; not trained here")
    if body.selected.numbers == "verdict":
        occurring = {cell.quotation.word for _, _, _, cell in places(body.others.panels) if cell.quotation}
        for word in (one for one in get_args(Word) if one in occurring):
            yield LegendEntry(word, _MEANING[word])
