"""What own runs say of a paper's printed numbers: reproduced, not reproduced, not run, and by what they differ."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.aggregate import half_interval, selection
from orchestrator.publish.papers import Number, PaperProtocol, PublishedTable, held_recipe, load, names, protocol_of
from orchestrator.publish.tables import build
from orchestrator.publish.tables.layout import parse
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.spec.axes import label_of
from orchestrator.views.errors import NotFoundError, timely
from orchestrator.views.evidence import (
    LedgerCounts,
    LedgerEntry,
    LedgerEvidence,
    LedgerSummary,
    LedgerTable,
    LedgerView,
    ProtocolDifference,
    Standing,
)
from orchestrator.views.runs import Cell, CellSummary, Statistic, SweepOutcomes
from workers.catalog import Catalog, meant
from workers.contract import Recipe

_SPLITS: Final = {
    "test": "the test split",
    "validation": "the validation split",
    "last": "the last weights, candidates by the test split",
}
_ALL_CLASSES: Final = "none: trained on all training images"


@dataclass(frozen=True, slots=True)
class CellProtocol:
    """What a cell of a sweep did, beside what the paper says."""

    outcomes: SweepOutcomes
    cell: Cell
    paper: PaperProtocol

    def data_set(self) -> str:
        """The name of the data set that it trains on."""
        return _label(self._at("dataset"))

    def tests_on(self, name: str) -> bool:
        """Whether it is a data set of that name that is tested: its own, or a test set beside that."""
        found = self._at("dataset")
        tests = found.get("tests", ()) if isinstance(found, Mapping) else ()
        return name in {_label(found), *tests}

    def differences(self, column: Column, number: Number, runs: int) -> list[ProtocolDifference]:
        """What differs of one number of the cell, and what the paper leaves open."""
        return [ProtocolDifference(what=what, paper=paper, here=here)
                for what, paper, here in self._found(column, number, runs)]  # fmt: skip

    def _found(self, column: Column, number: Number, runs: int) -> Iterator[tuple[str, str, str]]:
        if number.source:
            yield "protocol", f"that of {number.source}, which is not known here", "that of the sweep"
            return
        if self.paper.runs:
            yield "runs", self.paper.runs, f"mean of {runs}" if runs != 1 else "1"
        held = self._at("validation")
        if _label(held) != self.paper.validation:
            yield "validation", _ALL_CLASSES if self.paper.validation == "none" else self.paper.validation, _whole(held)
        split = column.selection or selection(self.outcomes.spec).split
        if split != self.paper.select:
            inferred = f"{_SPLITS[self.paper.select]} (inferred)" if self.paper.select in _SPLITS else self.paper.select
            yield "selection", inferred, f"by {_SPLITS.get(split, split)}"
        for path, expected in self.paper.recipe.items():
            if (here := _label(self._at(path))) != expected:
                yield path, expected, here
        stem = column.name.rpartition(":")[2]
        if number.metric in self.paper.metric and stem != (wanted := self.paper.metric[number.metric]):
            yield "clustering", wanted, stem

    def _at(self, path: str) -> Any:
        recipe = held_recipe(self.outcomes.spec, self.cell.labels)
        if path in recipe:
            return recipe[path]
        default = Recipe.model_fields[path].default
        return default.model_dump(mode="json") if hasattr(default, "model_dump") else default


def _label(value: Any) -> str:
    name = value.get("name") if isinstance(value, Mapping) else value
    return "" if name is None else label_of(name)


def _whole(value: Any) -> str:
    """A part with its hyper-parameters: `class_holdout (folds 4, fold 0)`."""
    if not isinstance(value, Mapping):
        return _label(value)
    more = ", ".join(f"{key} {label_of(one)}" for key, one in value.items() if key != "name" and one is not None)
    return f"{_label(value)} ({more})" if more else _label(value)


WITHIN: Final = 1.0
"""Points of percent that count as the same, unless another margin is asked for."""
_SHARE: Final = 0.05
"""Of a number that is no share, such as a norm: the part of it that counts as the same, for each point."""
_LAST_BITS: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Stance:
    """How a printed number stands; shares are fractions."""

    standing: Standing
    why: str
    difference: float | None = None
    interval: float | None = None
    expected: float | None = None


def stance(own: Statistic | None, summary: CellSummary, number: Number, within: float = WITHIN) -> Stance:
    """How a number stands by one cell.

    *Reproduced*: the whole 95 % interval of the own mean lies closer to the printed number than the margin (two
    one-sided tests, Schuirmann 1987, at 2.5 % each). *Not reproduced*: the number lies outside of where one more run
    of the own protocol falls 95 times of 100 (Student-t prediction interval), since it is itself a draw of unknown
    spread, most often of one run. Otherwise the runs are too few, or spread too much, to say: *underpowered*.
    """
    if own is None or number.value is None:
        return _without(own, summary, number)
    difference = own.mean - number.value
    half = half_interval(own)
    if half is None:
        reason = "a single run" if own.n == 1 else "the difference of two cells, of which no spread is known"
        return Stance("underpowered", f"{reason}: nothing to judge by", difference)
    if own.std is not None and own.std <= _LAST_BITS:
        return Stance("underpowered", f"the same in all {own.n} runs: no spread to judge by", difference)
    interval, expected = half + number.rounding, half * math.sqrt(own.n + 1) + number.rounding
    margin = within * (_SHARE * abs(number.value) if number.unit == "number" else 0.01)
    measures = (difference, interval, expected)
    if abs(difference) + interval <= margin + _LAST_BITS:
        return Stance("reproduced", "the interval of the own mean lies within the margin", *measures)
    if abs(difference) > expected + _LAST_BITS:
        side = "above" if difference > 0 else "below"
        return Stance("not reproduced", f"the own mean lies {side} by more than runs differ", *measures)
    return Stance("underpowered", _wanting(abs(difference), interval, margin), *measures)


def _wanting(difference: float, interval: float, margin: float) -> str:
    if difference >= margin:
        return "they differ by more than the margin, but by no more than single runs do"
    return "compatible, but the interval of the own mean is too wide to say more"


def _without(own: Statistic | None, summary: CellSummary, number: Number) -> Stance:
    diverged = summary.status == "diverged"
    if number.value is None:
        if own is None and not diverged:
            return Stance("not run", _REASONS.get(summary.status, "no run has finished yet"))
        word: Standing = "reproduced" if diverged else "not reproduced"
        return Stance(
            word, f"the paper prints '{number.printed}'; here the loss {'' if diverged else 'never '}diverged"
        )
    if diverged:
        return Stance("not reproduced", "the loss became NaN in every candidate")
    return Stance("not run", _REASONS.get(summary.status, "no run has finished yet"))


_REASONS: Final = {
    "failed": "no candidate finished in every repeat",
    "complete": "the cell's runs did not measure it",
}


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """One printed number and what a cell of a sweep says of it."""

    table: str  # such as SEC-T3
    position: int  # of the number in that table
    evidence: LedgerEvidence


def findings(outcomes: SweepOutcomes, catalog: Catalog, within: float) -> list[LedgerFinding]:
    """Every published number that the sweep's tables stand beside, whether or not there are runs of it."""
    cells = {cell.index: cell for cell in outcomes.cells}
    return [
        one for name in published_tables(outcomes.spec) for one in _of_table(outcomes, name, catalog, within, cells)
    ]


def published_tables(spec: Mapping[str, Any]) -> dict[str, PublishedTable]:
    """The tables of a spec that name one of a paper which is known, with that."""
    tables = spec.get("tables") or {}
    found = {}
    for name in tables:
        # Looked at before it is parsed: thousands of specs are looked through, and few name one.
        if tables[name].get("published") and (wanted := parse(spec, name).published) is not None:
            try:
                found[name] = load(wanted)
            except NotFoundError:  # of an old sweep: it is gone
                continue
    return found


def _of_table(
    outcomes: SweepOutcomes, name: str, catalog: Catalog, within: float, cells: Mapping[int, Cell]
) -> Iterator[LedgerFinding]:
    built = build.build(outcomes, name, catalog)
    paper = built.published
    if paper is None:
        return
    places = {id(number): at for at, number in enumerate(paper.numbers)}
    for column, place in _compared(built):
        if place.cell is None or place.quotation is None:
            continue
        number = place.quotation.number
        own = CellProtocol(outcomes, cells[place.cell], protocol_of(paper))
        stood = _stance(built, column, place, number, own, within)
        runs = place.statistic.n if place.statistic else 0
        yield LedgerFinding(paper.id, places[id(number)], LedgerEvidence(
            sweep=outcomes.sweep, sweep_name=outcomes.name, cell=place.cell, standing=stood.standing, why=stood.why,
            mean=place.statistic.mean if place.statistic else None,
            std=place.statistic.std if place.statistic else None, n=runs, difference=stood.difference,
            interval=stood.interval, expected=stood.expected, protocol=own.differences(column, number, runs),
        ))  # fmt: skip


def _compared(built: Table) -> Iterator[tuple[Column, TableCell]]:
    for panel in built.panels:
        for row in timely(panel.rows):
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind == "metric":
                    yield column, place


def _stance(built: Table, column: Column, place: TableCell, number: Number, own: CellProtocol, within: float) -> Stance:
    wanted = number.labels.get("dataset")
    if wanted and not own.tests_on(wanted):
        return Stance("not run", f"the cell trains on {own.data_set() or 'other data'}, not on {wanted}")
    summary = built.summary(column, place.cell or 0)
    if summary.status == "partial" and place.statistic is not None:
        return Stance("underpowered", "the cell has not ended: its number may still change")
    return stance(place.statistic, summary, number, within)


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
