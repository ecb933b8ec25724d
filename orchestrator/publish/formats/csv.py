"""CSV (RFC 4180), tidy: one line for each cell and metric, labels as the spec writes them, numbers unrounded."""

import csv
import io
import math
from collections.abc import Iterator
from typing import cast

from orchestrator.publish.sheet import Column, Row, Table, TableCell
from orchestrator.trial import CellSummary

media_type = "text/csv; charset=utf-8; header=present"
suffix = ".csv"

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBERS = ("metric", "key", "mean", "std", "n", "unit", "printed", "bold", "status", "candidates")


def render(table: Table) -> bytes:
    """Label columns, then the tuned values, then the numbers; means are fractions, `printed` is in `unit`."""
    axes = list(dict.fromkeys(axis for row, column, _ in _entries(table) for axis in (*row.labels, *column.labels)))
    tuned = list(dict.fromkeys(axis for summary in table.summaries.values() for axis in summary.labels))
    written = io.StringIO(newline="")
    out = csv.writer(written)
    out.writerow([guarded(title) for title in (*axes, *tuned, *_NUMBERS)])
    for row, column, cell in _entries(table):
        summary = table.summaries[cast(int, cell.cell)]
        labels = {**row.labels, **column.labels}
        texts = [*(labels.get(axis, "") for axis in axes), *(summary.labels.get(axis, "") for axis in tuned)]
        out.writerow([*(guarded(text) for text in texts), *_numbers(column, cell, summary)])
    return written.getvalue().encode()


def guarded(text: str) -> str:
    """`text` that no spreadsheet takes for a formula: a quote is put before one that begins like a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) and not _is_number(text) else text


def _entries(table: Table) -> Iterator[tuple[Row, Column, TableCell]]:
    for panel in table.panels:
        for row in panel.rows:
            for column, cell in zip(panel.columns, row.cells, strict=True):
                if column.kind == "metric" and cell.cell is not None:
                    yield row, column, cell


def _numbers(column: Column, cell: TableCell, summary: CellSummary) -> list[str | int]:
    found = cell.statistic
    mean = "" if found is None else repr(found.mean)
    std = "" if found is None or found.std is None else repr(found.std)
    n, printed = ("", "") if found is None else (found.n, cell.text)
    what = (guarded(column.name), column.key)
    return [*what, mean, std, n, column.unit, printed, int(cell.bold), summary.status, summary.candidates]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
