"""CSV (RFC 4180), tidy: one line for each cell and metric, labels as the spec writes them, numbers unrounded."""

import csv
import io
from collections.abc import Iterator

from orchestrator.publish.tables.table_data import Column, ImportedValue, Quotation, Table, TableCell, TableRow, places
from orchestrator.publish.verdicts.significance import Comparison
from orchestrator.spec.fields import finite
from orchestrator.views.runs import CellSummary

media_type = "text/csv; charset=utf-8; header=present"
suffix = ".csv"

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBERS = ("metric", "key", "mean", "std", "n", "unit", "printed", "bold", "status", "candidates")
_TESTED = ("pairs", "paired_difference", "p", "corrected_p")
_IMPORTED = ("imported_row", "source", "against", "imported_difference", "welch_p", "welch_corrected_p", "tested")
_PAPER = ("published", "published_std", "difference", "tolerance", "verdict")


def render(table: Table) -> bytes:
    """Writes a table as CSV: label columns, tuned values, then numbers; means are fractions, `printed` is in `unit`.

    A median or a best value has a column next to the mean, and so have the tests against a baseline. A table that is
    compared with a published one has columns for that too, whichever of its numbers it shows; rows that are quoted
    from it have no other numbers, and the status `quoted`. Imported rows have their mean, deviation and n, the status
    `imported`, and columns for where they come from and how they compare with an own row. Where some numbers are of
    older versions a column says `older` or `mixed`; where the runs of some differ in data, code or versions of parts
    the last column says how.
    """
    axes = list(dict.fromkeys(axis for row, column, _ in _entries(table) for axis in (*row.labels, *column.labels)))
    every = (*table.summaries.values(), *table.tested.values())
    tuned = list(dict.fromkeys(axis for summary in every for axis in summary.labels))
    written = io.StringIO(newline="")
    out = csv.writer(written)
    paper = _PAPER if table.published is not None else ()
    center = () if table.layout.center == "mean" else (table.layout.center,)
    tested = _TESTED if any(cell.comparison for _, _, cell in _entries(table)) else ()
    taken = _IMPORTED if any(cell.imported for _, _, cell in _entries(table)) else ()
    aged = ("versions",) if table.ages else ()
    blend = ("mixed",) if any(cell.mixed for _, _, cell in _entries(table)) else ()
    out.writerow(
        [guarded(title) for title in (*axes, *tuned, *_NUMBERS, *center, *tested, *paper, *taken, *aged, *blend)]
    )
    for row, column, cell in _entries(table):
        summary = None if cell.cell is None else table.summary(column, cell.cell)
        labels = {**row.labels, **column.labels}
        chosen = summary.labels if summary else {}
        texts = [*(labels.get(axis, "") for axis in axes), *(chosen.get(axis, "") for axis in tuned)]
        more = [_exact(cell.center)] if center else []
        more += _compared(cell.comparison) if tested else []
        more += _quoted(cell.quotation) if paper else []
        more += _imported(cell.imported) if taken else []
        more += ["" if cell.cell is None else table.ages.get(cell.cell, "")] if aged else []
        more += [cell.mixed] if blend else []
        out.writerow([*(guarded(text) for text in texts), *_numbers(column, cell, summary), *more])
    return written.getvalue().encode()


def guarded(text: str) -> str:
    """Escapes a text for spreadsheets: a quote precedes a text that they would read as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) and finite(text) is None else text


def _entries(table: Table) -> Iterator[tuple[TableRow, Column, TableCell]]:
    for _, row, column, cell in places(table.panels):
        known = cell.cell is not None or cell.quotation or cell.imported
        if column.kind in {"metric", "difference", "selection_gap"} and known:
            yield row, column, cell


def _numbers(column: Column, cell: TableCell, summary: CellSummary | None) -> list[str | int]:
    found = cell.imported.statistic if cell.imported else cell.statistic
    measured = ("", "", "") if found is None else (_exact(found.mean), _exact(found.std), found.n or "")
    printed = cell.text if cell.numeric else ""
    name = f"selection_gap:{column.name}" if column.kind == "selection_gap" else column.name
    what = (guarded(name), column.key)
    about: tuple[str | int, ...] = ("quoted", "") if summary is None else (summary.status, summary.candidates)
    about = ("imported", "") if cell.imported else about
    about = ("no partner", about[1]) if cell.lone else about
    return [*what, *measured, column.unit, printed, int(cell.bold), *about]


def _compared(one: Comparison | None) -> list[str]:
    """The pairs, their mean difference, p and the corrected p."""
    if one is None:
        return [""] * len(_TESTED)
    return [str(one.n), _exact(one.difference), _exact(one.p), _exact(one.corrected)]


def _exact(value: float | None) -> str:
    return "" if value is None else repr(value)


def _quoted(quotation: Quotation | None) -> list[str]:
    """The published value (or word), its deviation, own - published, the tolerance and the verdict."""
    if quotation is None:
        return [""] * len(_PAPER)
    number = quotation.number
    value = guarded(number.printed) if number.value is None else repr(number.value)
    return [value, *map(_exact, (number.std, quotation.difference, quotation.tolerance)), quotation.word or ""]


def _imported(one: ImportedValue | None) -> list[str]:
    """The row, the source, the own row, imported - own, p, the corrected p, and the word or why there is none."""
    if one is None:
        return [""] * len(_IMPORTED)
    test = one.test
    if test is None:
        return [guarded(one.label), guarded(one.source), *[""] * (len(_IMPORTED) - 2)]
    numbers = map(_exact, (test.difference, test.p, test.corrected))
    word = f"{test.word}: {test.why}" if test.why else test.word
    return [*map(guarded, (one.label, one.source, test.own)), *numbers, word]
