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

    Columns that only some tables need follow: the median or best value, tests against a baseline, the comparison with a
    published table, imported rows, and how versions and runs differ. Quoted rows have the status `quoted`, imported
    rows `imported`.
    """
    axes = list(dict.fromkeys(axis for row, column, _ in _entries(table) for axis in (*row.labels, *column.labels)))
    every = (*table.summaries.values(), *table.tested.values())
    tuned = list(dict.fromkeys(axis for summary in every for axis in summary.labels))
    written = io.StringIO(newline="")
    out = csv.writer(written)
    cells = [cell for _, _, cell in _entries(table)]
    optional = [
        *((table.layout.center,) if table.layout.center != "mean" else ()),
        *(_TESTED if any(cell.comparison for cell in cells) else ()),
        *(_PAPER if table.published is not None else ()),
        *(_IMPORTED if any(cell.imported for cell in cells) else ()),
        *(("versions",) if table.ages else ()),
        *(("mixed",) if any(cell.mixed for cell in cells) else ()),
    ]
    out.writerow([guarded(title) for title in (*axes, *tuned, *_NUMBERS, *optional)])
    for row, column, cell in _entries(table):
        summary = None if cell.cell is None else table.summary(column, cell.cell)
        labels = {**row.labels, **column.labels}
        chosen = summary.labels if summary else {}
        texts = [*(labels.get(axis, "") for axis in axes), *(chosen.get(axis, "") for axis in tuned)]
        age = "" if cell.cell is None else table.ages.get(cell.cell, "")
        more = {table.layout.center: _exact(cell.center), "versions": age, "mixed": cell.mixed}
        more |= _compared(cell.comparison) | _quoted(cell.quotation) | _imported(cell.imported)
        more_texts = (more.get(name, "") for name in optional)
        out.writerow([*map(guarded, texts), *_numbers(column, cell, summary), *more_texts])
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


def _exact(value: float | None) -> str:
    return "" if value is None else repr(value)


def _compared(one: Comparison | None) -> dict[str, str]:
    if one is None:
        return {}
    return dict(zip(_TESTED, (str(one.n), *map(_exact, (one.difference, one.p, one.corrected))), strict=True))


def _quoted(quotation: Quotation | None) -> dict[str, str]:
    if quotation is None:
        return {}
    number = quotation.number
    value = guarded(number.printed) if number.value is None else repr(number.value)
    numbers = map(_exact, (number.std, quotation.difference, quotation.tolerance))
    return dict(zip(_PAPER, (value, *numbers, quotation.word or ""), strict=True))


def _imported(one: ImportedValue | None) -> dict[str, str]:
    if one is None:
        return {}
    found = {"imported_row": guarded(one.label), "source": guarded(one.source)}
    if (test := one.test) is None:
        return found
    numbers = map(_exact, (test.difference, test.p, test.corrected))
    word = f"{test.word}: {test.why}" if test.why else test.word
    return found | dict(zip(_IMPORTED[2:], (guarded(test.own), *numbers, word), strict=True))
