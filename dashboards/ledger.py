"""The pages of the ledgers: what own runs say of the papers' numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from dashboards.rendering import render
from orchestrator.views.evidence import LedgerEntry, LedgerEvidence, LedgerSummary, LedgerTable, LedgerView, Standing

STANDINGS: Final = get_args(Standing)
EXPORTS: Final = ("latex", "markdown", "csv", "json")


@dataclass(frozen=True, slots=True)
class EntryLine:
    """A number of a paper as the page tells it."""

    entry: LedgerEntry
    first: LedgerEvidence | None
    own: str
    difference: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A printed table with those of its numbers that the page lists."""

    table: LedgerTable
    lines: Sequence[EntryLine]


def papers_page(found: Sequence[LedgerSummary]) -> str:
    """The papers that have a ledger."""
    return render("ledgers.html", None, papers=found, standings=STANDINGS)


def ledger_page(view: LedgerView, standing: str = "") -> str:
    """One paper; by default every number that was run, else those that stand so."""
    wanted = standing if standing in STANDINGS else ""
    tables = []
    for table in view.tables:
        shown = [one for one in table.entries if (one.standing == wanted if wanted else one.standing != "not run")]
        tables.append(ShownTable(table, [_line(one) for one in shown]))
    return render(
        "ledger.html", None, view=view, tables=tables, standing=wanted, standings=STANDINGS, exports=EXPORTS
    )  # fmt: skip


def _line(entry: LedgerEntry) -> EntryLine:
    one = entry.evidence[0] if entry.evidence else None
    own, difference = (text.replace("-", "−") for text in entry.own_and_difference)
    return EntryLine(entry, one, own, difference)
