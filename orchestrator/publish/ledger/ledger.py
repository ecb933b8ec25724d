"""The ledger of a paper, from what sweeps say of its numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.publish.ledger.findings import LedgerFinding
from orchestrator.publish.published import Number, PublishedTable, load, names
from orchestrator.views.errors import NotFoundError
from orchestrator.views.ledger import (
    LedgerCounts,
    LedgerEntry,
    LedgerEvidence,
    LedgerSummary,
    LedgerTable,
    LedgerView,
    Standing,
)
from workers.catalog import meant

_Place = tuple[str, int]


def papers() -> list[str]:
    """The papers whose numbers are known."""
    return list(dict.fromkeys(load(name).paper for name in names()))


def known_paper(name: str) -> str:
    """A paper by its name in any case; NotFoundError with a near miss."""
    known = {one.casefold(): one for one in papers()}
    if name.casefold() not in known:
        raise NotFoundError(f"no paper named {name!r} here; {meant(name, papers())}")
    return known[name.casefold()]


def ledger(paper: str, found: Iterable[LedgerFinding], within: float) -> LedgerView:
    """The ledger of a paper by its name; findings of other papers' tables are passed over."""
    evidence: dict[_Place, list[LedgerEvidence]] = {}
    for one in found:
        evidence.setdefault((one.table, one.position), []).append(one.evidence)
    tables = [_table(table, evidence) for name in names() if (table := load(name)).paper == paper]
    sweeps = {one.sweep for table in tables for entry in table.entries for one in entry.evidence}
    return LedgerView(
        paper=paper, citation=load(tables[0].id).citation, counts=counts(e for t in tables for e in t.entries),
        within=within, sweeps=sorted(sweeps), said=_said(within), tables=tables,
    )  # fmt: skip


def summary(view: LedgerView) -> LedgerSummary:
    """A ledger in a list."""
    return LedgerSummary(paper=view.paper, citation=view.citation, counts=view.counts)


def counts(entries: Iterable[LedgerEntry]) -> LedgerCounts:
    """How many of some numbers stand how."""
    tally = Counter(one.standing for one in entries)
    return LedgerCounts(**{word.replace(" ", "_"): count for word, count in tally.items()})


def _table(table: PublishedTable, evidence: Mapping[_Place, Sequence[LedgerEvidence]]) -> LedgerTable:
    entries = [_entry(table, number, evidence.get((table.id, at), ())) for at, number in enumerate(table.numbers)]
    return LedgerTable(
        id=table.id, title=table.title, counts=counts(entries), open=[*table.conflicts.values()], entries=entries
    )


def _entry(table: PublishedTable, number: Number, evidence: Sequence[LedgerEvidence]) -> LedgerEntry:
    ranked = sorted(evidence, key=_rank)
    standing: Standing = ranked[0].standing if ranked else "not run"
    return LedgerEntry(
        table=table.id, labels=dict(number.labels), tuned=dict(number.tuned), metric=number.metric,
        printed=number.printed, unit=number.unit, source=number.source or None, standing=standing, evidence=ranked,
    )  # fmt: skip


def _rank(one: LedgerEvidence) -> tuple[bool, int, int, int, int]:
    """Which evidence decides: by how it was made, never by what it says."""
    return one.standing == "not run", len(one.protocol), -one.n, -one.sweep, one.cell


def _said(within: float) -> str:
    return (
        "Reproduced: the 95 % Student-t interval of the own mean, widened by half a printed digit, lies within "
        f"{within:g} point{'s' * (within != 1)} of the printed number (of a number that is no share, within "
        f"{5 * within:g} % of it). "
        "Not reproduced: the printed number lies outside of where one more own run falls 95 times of 100. "
        "Underpowered: neither. Not run: no own number on that data set. "
        "Nothing is corrected for the number of comparisons: where all is as printed, up to one of twenty reads not "
        "reproduced by chance."
    )
