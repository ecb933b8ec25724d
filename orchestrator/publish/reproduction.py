"""Compares own runs with a paper's printed numbers: reproduced, not reproduced, not run, and by what they differ."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.publish.aggregate import half_interval, selection
from orchestrator.publish.papers import NOTHING, Own, PaperProtocol, PublishedTable, load, names, recipe_of
from orchestrator.publish.tables import build
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.spec.fields import label_of
from orchestrator.views.errors import NotFoundError
from orchestrator.views.evidence import (
    ProtocolDifference,
    PublishedNumber,
    ReproductionCounts,
    ReproductionEntry,
    ReproductionEvidence,
    ReproductionStatus,
    ReproductionTable,
    ReproductionView,
)
from orchestrator.views.runs import Cell, CellSummary, Statistic, SweepResults
from workers.catalog import Catalog, suggestion
from workers.contract import Recipe

_SPLITS: Final = {
    "test": "the test split",
    "validation": "the validation split",
    "last": "the last weights, candidates by the test split",
}
_ALL_CLASSES: Final = "none: trained on all training images"

WITHIN: Final = 1.0
"""The default margin: percentage points that count as the same."""
_SHARE: Final = 0.05
"""The margin of numbers that are not shares, such as norms: this part of the number for each percentage point."""
_LAST_BITS: Final = 1e-12

_EXPLANATION: Final = (
    "Reproduced: the 95 % Student-t interval of the own mean, widened by half a printed digit, lies within {points} of "
    "the printed number (of a number that is no share, within {share:g} % of it). "
    "Not reproduced: the printed number lies outside of where one more own run falls 95 times of 100. "
    "Underpowered: neither. Not run: no own number on that data set. "
    "Nothing is corrected for the number of comparisons: where all is as printed, up to one of twenty reads not "
    "reproduced by chance."
)
_REASONS: Final = {"failed": "no candidate finished in every repeat", "complete": "the cell's runs did not measure it"}


@dataclass(frozen=True, slots=True)
class ReproductionFinding:
    """A printed number and how the runs of a sweep's cell compare with it."""

    table: str  # such as SEC-T3
    position: int  # of the number in that table
    evidence: ReproductionEvidence


def reproduction(
    paper: str, found: Iterable[ReproductionFinding], within: float, own: Own = NOTHING
) -> ReproductionView:
    """The reproduction report of a paper, from the findings on its tables.

    The name is taken in any case; the NotFoundError for an unknown name suggests a similar name.
    """
    known = {name.casefold(): name for name in papers(own)}
    if paper.casefold() not in known:
        raise NotFoundError(f"no paper named {paper!r} here; {suggestion(paper, papers(own))}")
    paper = known[paper.casefold()]
    evidence: dict[tuple[str, int], list[ReproductionEvidence]] = {}
    for finding in found:
        evidence.setdefault((finding.table, finding.position), []).append(finding.evidence)
    tables = []
    for table in (load(name, own) for name in names(own)):
        if table.paper == paper:
            entries = [_entry(table, it, evidence.get((table.id, at), ())) for at, it in enumerate(table.numbers)]
            tables.append(ReproductionTable(
                id=table.id, title=table.title, counts=counts(entries), open=[*table.conflicts.values()],
                entries=entries,
            ))  # fmt: skip
    sweeps = {its.sweep for table in tables for entry in table.entries for its in entry.evidence}
    return ReproductionView(
        paper=paper, citation=load(tables[0].id, own).citation, counts=counts(e for t in tables for e in t.entries),
        within=within, sweeps=sorted(sweeps), tables=tables,
        summary=_EXPLANATION.format(points=f"{within:g} point{'s' * (within != 1)}", share=5 * within),
    )  # fmt: skip


def _entry(
    table: PublishedTable, number: PublishedNumber, evidence: Sequence[ReproductionEvidence]
) -> ReproductionEntry:
    ranked = sorted(evidence, key=_rank)
    status: ReproductionStatus = ranked[0].status if ranked else "not run"
    return ReproductionEntry(
        table=table.id, labels=dict(number.labels), tuned=dict(number.tuned), metric=number.metric,
        printed=number.printed, unit=number.unit, source=number.source, status=status, evidence=ranked,
    )  # fmt: skip


def _rank(evidence: ReproductionEvidence) -> tuple[bool, int, int, int, int]:
    """The order in which evidence decides: by how it was made, never by its number."""
    return evidence.status == "not run", len(evidence.protocol), -evidence.n, -evidence.sweep, evidence.cell


def counts(entries: Iterable[ReproductionEntry]) -> ReproductionCounts:
    """Counts the entries of a reproduction report by status, such as reproduced or not run."""
    tally = Counter(entry.status for entry in entries)
    return ReproductionCounts(**{word.replace(" ", "_"): count for word, count in tally.items()})


def findings(results: SweepResults, catalog: Catalog, within: float) -> list[ReproductionFinding]:
    """The findings for all published numbers that correspond to a cell of the sweep's tables, even without runs."""
    return [
        finding
        for name, paper in published_tables(results.spec, catalog.published).items()
        for finding in _of_table(results, name, paper, catalog, within)
    ]


def published_tables(spec: Mapping[str, Any], own: Own) -> dict[str, PublishedTable]:
    """The tables of a spec that name a known published table, by name, with that published table."""
    found = {}
    for name, table in (spec.get("tables") or {}).items():
        with suppress(NotFoundError):  # named by an old sweep, and removed since
            if table.get("published"):
                found[name] = load(table["published"], own)
    return found


def _of_table(
    results: SweepResults, name: str, paper: PublishedTable, catalog: Catalog, within: float
) -> Iterator[ReproductionFinding]:
    built = build.build(results, name, catalog)
    cells = {cell.index: cell for cell in results.cells}
    places = {id(number): at for at, number in enumerate(paper.numbers)}
    for column, place, cell in built.metric_cells():
        if place.quotation is None:
            continue
        number, measured = place.quotation.number, place.statistic
        mean, std, runs = (measured.mean, measured.std, measured.n) if measured else (None, None, 0)
        own = CellProtocol(results, cells[cell], paper.protocol)
        found = _judge(built, column, place, number, own, within)
        yield ReproductionFinding(paper.id, places[id(number)], ReproductionEvidence(
            sweep=results.sweep, sweep_name=results.name, cell=cell, status=found.status, why=found.why,
            mean=mean, std=std, n=runs, difference=found.difference, interval=found.interval, expected=found.expected,
            protocol=[ProtocolDifference(what=what, paper=says, here=here)
                      for what, says, here in own.differences(column, number, runs)],
        ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellProtocol:
    """The protocol of a sweep's cell, compared with the protocol of the paper."""

    results: SweepResults
    cell: Cell
    paper: PaperProtocol

    def other_data(self, wanted: str) -> str | None:
        """The name of the cell's data set if it does not test on the data set `wanted`, or else `None`."""
        dataset = self._at("dataset")
        tests = dataset.get("tests", ()) if isinstance(dataset, Mapping) else ()
        return None if wanted in {_label(dataset), *tests} else _label(dataset)

    def differences(self, column: Column, number: PublishedNumber, runs: int) -> Iterator[tuple[str, str, str]]:
        """For one number, the protocol's differences and what the paper leaves open: topic, in the paper, and here."""
        if number.source:
            yield "protocol", f"that of {number.source}, which is not known here", "that of the sweep"
            return
        if self.paper.runs:
            yield "runs", self.paper.runs, f"mean of {runs}" if runs != 1 else "1"
        held = self._at("validation")
        if _label(held) != self.paper.validation:
            yield "validation", _ALL_CLASSES if self.paper.validation == "none" else self.paper.validation, _whole(held)
        split = column.selection or selection(self.results.spec).split
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
        recipe = recipe_of(self.results.spec, self.cell.labels)
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a printed number was reproduced, with the reason; shares are fractions."""

    status: ReproductionStatus
    why: str
    difference: float | None = None
    interval: float | None = None
    expected: float | None = None


def _judge(
    built: Table, column: Column, place: TableCell, number: PublishedNumber, own: CellProtocol, within: float
) -> Judgement:
    wanted = number.labels.get("dataset")
    if wanted and (other := own.other_data(wanted)) is not None:
        return Judgement("not run", f"the cell trains on {other or 'other data'}, not on {wanted}")
    summary = built.summary(column, place.cell or 0)
    if summary.status == "partial" and place.statistic is not None:
        return Judgement("underpowered", "the cell has not ended: its number may still change")
    return judge(place.statistic, summary, number, within)


def judge(own: Statistic | None, summary: CellSummary, number: PublishedNumber, within: float = WITHIN) -> Judgement:
    """Judges whether the runs of a cell reproduce a printed number.

    *Reproduced*: the whole 95 % interval of the own mean lies closer to the printed number than the margin (two
    one-sided tests, Schuirmann 1987, at 2.5 % each). *Not reproduced*: the number lies outside the interval into which
    one more run of the own protocol falls with probability 95 % (Student-t prediction interval), since the number is
    itself a draw of unknown spread, usually of one run. *Underpowered*: the runs are too few, or spread too much.
    """
    if own is None or number.value is None:
        return _without_number(own, summary, number)
    difference = own.mean - number.value
    half = half_interval(own)
    if half is None:
        reason = "a single run" if own.n == 1 else "the difference of two cells, of which no spread is known"
        return Judgement("underpowered", f"{reason}: nothing to judge by", difference)
    if own.std is not None and own.std <= _LAST_BITS:
        return Judgement("underpowered", f"the same in all {own.n} runs: no spread to judge by", difference)
    interval, expected = half + number.rounding, half * math.sqrt(own.n + 1) + number.rounding
    margin = within * (_SHARE * abs(number.value) if number.unit == "number" else 0.01)
    measures = (difference, interval, expected)
    if abs(difference) + interval <= margin + _LAST_BITS:
        return Judgement("reproduced", "the interval of the own mean lies within the margin", *measures)
    if abs(difference) > expected + _LAST_BITS:
        side = "above" if difference > 0 else "below"
        return Judgement("not reproduced", f"the own mean lies {side} by more than runs differ", *measures)
    if abs(difference) >= margin:
        why = "they differ by more than the margin, but by no more than single runs do"
    else:
        why = "compatible, but the interval of the own mean is too wide to say more"
    return Judgement("underpowered", why, *measures)


def _without_number(own: Statistic | None, summary: CellSummary, number: PublishedNumber) -> Judgement:
    """How a number stands if the paper prints a word instead, or the cell has no number."""
    diverged = summary.status == "diverged"
    if own is None and not diverged:
        return Judgement("not run", _REASONS.get(summary.status, "no run has finished yet"))
    if number.value is not None:
        return Judgement("not reproduced", "the loss became NaN in every candidate")
    status: ReproductionStatus = "reproduced" if diverged else "not reproduced"
    loss = f"the loss {'' if diverged else 'never '}diverged"
    return Judgement(status, f"the paper prints '{number.printed}'; here {loss}")


def papers(own: Own = NOTHING) -> list[str]:
    """The names of the papers with known tables."""
    return list(dict.fromkeys(load(name, own).paper for name in names(own)))
