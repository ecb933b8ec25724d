"""JSON: everything that is known of a table, with unrounded values and intervals."""

import json
import math
from dataclasses import asdict
from typing import Any

from orchestrator.publish.aggregate import interval, standard_error
from orchestrator.publish.tables.table_data import Column, ImportedValue, Panel, Quotation, Table, TableCell, TableRow
from orchestrator.publish.verdicts.judge import CellVerdict, QuerySpread
from orchestrator.publish.verdicts.significance import Comparison
from orchestrator.views.runs import NO_SWEEP, CellSummary, Statistic

media_type = "application/json"
suffix = ".json"


def render(table: Table) -> bytes:
    """Writes a table as one JSON object; means are fractions, `text` is printed in the column's unit."""
    content: dict[str, Any] = {
        "table": table.name,
        "numbers": table.numbers,
        "sweep": {
            "id": None if table.sweep == NO_SWEEP else table.sweep,
            "name": table.sweep_name,
            "state": table.state,
        },
        "center": table.layout.center,
        "spread": table.layout.shown_spread,
        "caption": table.words.caption,
        "notes": list(table.words.below),
        "details": list(table.words.folded),
        "legend": [{"symbol": one.symbol, "meaning": one.meaning} for one in table.legend],
        "complete": table.complete,
        "total": len(table.summaries),
        "stub": list(table.stub),
        "panels": [_panel(panel) for panel in table.panels],
        "cells": [_summary(one) for one in table.summaries.values()],
    }
    if table.layout.covers != "seeds":
        content["covers"] = table.layout.covers
    if table.ages:
        content["versions"] = {str(cell): age for cell, age in table.ages.items()}
    if table.tested:
        content["cells_by_test"] = [_summary(one) for one in table.tested.values()]
    if table.published is not None:
        paper = table.published
        content["published"] = {
            "id": paper.id, "paper": paper.citation, "title": paper.title, "note": paper.note,
            "conflicts": dict(paper.conflicts),
        }  # fmt: skip
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "groups": [[{"text": one.text, "span": one.span} for one in level] for level in panel.groups],
        "columns": [_column(column) for column in panel.columns],
        "rows": [_row(row) for row in panel.rows],
    }


def _column(column: Column) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": column.kind, "name": column.name, "title": column.title}
    found["labels"] = dict(column.labels)
    if column.selection is not None:
        found["selection"] = column.selection
    if not column.wordy:
        found |= {"key": column.key, "unit": column.unit, "decimals": column.decimals, "better": column.better}
        found["delta"] = None if column.delta is None else dict(column.delta)
    return found


def _row(row: TableRow) -> dict[str, Any]:
    found = {"headings": list(row.texts), "labels": dict(row.labels), "cells": [_cell(cell) for cell in row.cells]}
    kinds = {"quoted": row.quoted, "imported": row.imported is not None}
    return found | {kind: True for kind, given in kinds.items() if given}


def _cell(cell: TableCell) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "text": cell.text,
        "std_text": cell.std,
        "bold": cell.bold,
        "mark": cell.mark,
        "note": cell.note,
        "cell": cell.cell,
        "span": cell.span,
        "value": _statistic(cell.statistic),
    }
    known = {
        "center": cell.center,
        "runs": cell.count,
        "mixed": cell.mixed or None,
        "comparison": cell.comparison and _comparison(cell.comparison),
        "verdict": cell.verdict and _judged(cell.verdict, cell.verdict_summary),
        "queries": cell.queries and _queries(cell.queries),
        "published": cell.quotation and _quotation(cell.quotation),
        "imported": cell.imported and _imported(cell.imported),
    }
    fields |= {name: value for name, value in known.items() if value is not None}
    return fields | ({"partner": None} if cell.lone else {})


def _imported(one: ImportedValue) -> dict[str, Any]:
    statistic = one.statistic
    fields: dict[str, Any] = {"label": one.label, "source": one.source}
    fields |= {"mean": statistic.mean, "std": statistic.std, "n": statistic.n or None}
    if (test := one.test) is not None:
        fields["test"] = {"word": test.word, "summary": test.summary, "against": test.own}
        fields["test"] |= {"difference": test.difference, "p": test.p, "corrected_p": test.corrected}
    return fields


def _comparison(one: Comparison) -> dict[str, Any]:
    fields = {"baseline": one.baseline, "n": one.n, "difference": one.difference, "p": one.p}
    return fields | {"corrected_p": one.corrected, "sign": one.sign or None}


def _judged(one: CellVerdict, summary: str) -> dict[str, Any]:
    fields = {"word": one.word, "summary": summary, "pairs": one.pairs, "difference": one.difference}
    fields |= {"interval": one.interval, "p": one.p, "needs": one.needs, "spent": one.spent, "more_seeds": one.more}
    return fields | ({} if one.spread is None else {"covers": one.covers, **_queries(one.spread)})


def _queries(one: QuerySpread) -> dict[str, Any]:
    """Of how many queries, and the standard errors of the mean from seeds alone, from queries alone and from both."""
    several = one.runs > 1
    return {
        "queries": one.queries,
        "classes": one.classes,
        "error_seeds": math.sqrt(one.seeds) if several else None,
        "error_queries": math.sqrt(one.between),
        "error_both": math.sqrt(one.both) if several else None,
    }


def _quotation(quotation: Quotation) -> dict[str, Any]:
    number = quotation.number
    return {
        "printed": number.printed,
        "value": number.value,
        "std": number.std,
        "bold": bool(number.bold),
        "tuned": dict(number.tuned),
        "source": number.source,
        "difference": quotation.difference,
        "tolerance": quotation.tolerance,
        "verdict": quotation.word,
    }


def _summary(summary: CellSummary) -> dict[str, Any]:
    return {
        "cell": summary.cell,
        "status": summary.status,
        "candidate": summary.candidate,
        "tuned": dict(summary.labels),
        "candidates": summary.candidates,
        "selection_key": summary.selection_key,
        "score": _statistic(summary.score),
        "metrics": {key: _statistic(found) for key, found in summary.metrics.items()},
    }


def _statistic(found: Statistic | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return asdict(found) | {"standard_error": standard_error(found), "interval95": interval(found)}
