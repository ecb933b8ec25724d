"""Second pass of a table, cells: from summaries to printed cells with headings, bold, marks and comparisons."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from orchestrator.publish.aggregate import Baselines, Repeat, run_values, spread_of
from orchestrator.publish.labels import metric_facts
from orchestrator.publish.tables.evidence import QueryEvidence
from orchestrator.publish.tables.layout import Arrangement, Grid, Placement, arranged
from orchestrator.publish.tables.other_rows import Body, with_other_rows
from orchestrator.publish.tables.select import Selection
from orchestrator.publish.tables.table_data import (
    PENDING,
    SETTLED,
    Column,
    Mark,
    Panel,
    Place,
    Table,
    TableCell,
    TableRow,
    changed,
    mark_meaning,
    places,
)
from orchestrator.publish.verdicts.judge import QuerySpread, half_width
from orchestrator.publish.verdicts.significance import LEVEL, MIN_RUNS, Comparison, compare, holm
from orchestrator.views.errors import timely
from orchestrator.views.runs import Cell, CellSummary, Statistic, SweepResults, TrialResult
from orchestrator.views.sweeps import Counts, Heat
from orchestrator.views.tables import printed, printed_spread
from workers.contract import BEST_TEST

Compared = tuple[int, str | None, str]
"""A cell, its selection and a result key: a metric that stands twice, in other units, is one comparison."""


def cells(selected: Selection, *, doubts: bool = False) -> Body:
    """Makes the printed cells of a table; with `doubts`, a bold number explains why its lead may be noise."""
    arrangement, layout = arranged(selected), selected.layout
    block = _block(selected, arrangement)
    writer = EntryWriter(selected, QueryEvidence(selected.results.queries))
    panels = tuple(_panel(writer, arrangement.placement, grid) for grid in arrangement.grids)
    usual = _usual_count(panels)
    panels = changed(panels, lambda _, column, cell: _marked(selected, usual, column, cell))
    if block is not None:
        panels = _emboldened(panels, selected, block, doubts=doubts and selected.printed is None)
    comparisons = _comparisons(panels, selected, writer) if layout.against else {}
    panels = changed(panels, lambda _, column, cell: _compared(comparisons, column, cell)) if comparisons else panels
    return Body(
        selected=selected,
        stub=arrangement.stub,
        rows=[arrangement.axes[axis] for axis in arrangement.placement.row_axes if axis in arrangement.axes],
        points=arrangement.points,
        own=panels,
        block=block,
        comparisons=list(comparisons.values()),
        usual=usual,
        others=with_other_rows(selected, panels, len(arrangement.stub)),
    )


def _panel(writer: "EntryWriter", placement: Placement, grid: Grid) -> Panel:
    rows = []
    for row, heading in timely(zip(grid.rows, grid.row_headings, strict=True)):
        pairs = zip(grid.points, grid.columns, strict=True)
        written = _spanned([writer.cell(placement.cells.get((row, point)), column) for point, column in pairs])
        labels = dict(zip(placement.row_axes, row, strict=True))
        rows.append(TableRow(heading.headings, heading.texts, labels, heading.rule, written))
    return Panel(grid.levels, grid.columns, tuple(rows))


def _block(selected: Selection, arrangement: Arrangement) -> frozenset[str] | None:
    """The axes that span a block of which the best is bold; None means that nothing is bold."""
    given, rows = selected.layout.bold, arrangement.placement.row_axes
    if given is not None:
        return None if given == "none" else frozenset(given)
    last = max((at for at, axis in enumerate(rows) if axis in arrangement.axes), default=0)
    return frozenset((*rows[:last], *arrangement.placement.column_axes))


class EntryWriter:
    """Makes the printed cells of one table from the summaries of the sweep's cells."""

    def __init__(self, selected: Selection, evidence: QueryEvidence) -> None:
        self._selected, self._evidence = selected, evidence
        self._layout = selected.layout
        self._cells = {cell.index: cell for cell in selected.results.cells}
        wanted = [column.wanted.delta for column in selected.columns] + [selected.layout.against]
        self._baselines = {
            tuple(labels.items()): Baselines(selected.results.cells, labels) for labels in wanted if labels
        }

    def cell(self, cell: Cell | None, column: Column) -> TableCell:
        """The printed cell of a sweep's cell in a column; `None` stands for a combination that the sweep lacks."""
        if cell is None:
            return self._absent("not in this sweep")
        summary = self._selected.shown[column.selection][cell.index]
        if column.kind == "selection_gap":
            return self.selection_gap(summary, self._selected.tested[cell.index], column)
        if column.kind == "tuned":
            return self._tuned(summary, column.name)
        if column.delta is None:
            return self.value(summary, column)
        if self._selected.printed:
            return self._printed_difference(summary, column)
        return self.difference(summary, self.baseline(column, column.delta, cell.index), column)

    def baseline(self, column: Column, wanted: Mapping[str, str], cell: int) -> CellSummary | None:
        """The summary of a cell's baseline: the cell with the labels `wanted` and otherwise the cell's own labels."""
        found = self._baselines[tuple(wanted.items())].of(self._cells[cell])
        return None if found is None else self._selected.shown[column.selection][found.index]

    def _absent(self, note: str, cell: int | None = None) -> TableCell:
        """A place without a number, now and later."""
        return TableCell(self._layout.missing, note=note, cell=cell)

    def value(self, summary: CellSummary, column: Column) -> TableCell:
        """The printed cell of a metric: mean of the selected candidate and, if the layout asks for it, spread."""
        mark = _cell_mark(summary)
        if mark is not None and mark != "partial":
            return self._without_value(summary, mark)
        metric = summary.metrics.get(column.key)
        if metric is None and column.key.rpartition("/")[2] in summary.coming:
            return self._coming(summary)
        if metric is None:
            why = "has no value" if column.key in summary.undefined else "was not computed in every repeat"
            note = f"{column.key} {why}" if summary.candidate is not None else ""
            return replace(self._absent(note, summary.cell), mark=mark)
        center = self._center(summary, column.key)
        written = self._number(summary, metric, column, _provenance(summary, metric.n), center)
        return self._covering(written, summary, column) if self._selected.covers != "seeds" else written

    def _covering(self, written: TableCell, summary: CellSummary, column: Column) -> TableCell:
        """A number whose spread covers test queries, or that says why it has no spread."""
        runs = self._selected.runs.get((summary.cell, summary.candidate or 0), ())
        valued = [one for one in runs if math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged]
        found = self._evidence.of(column, [(one, None) for one in valued])
        if isinstance(found, str):
            return replace(written, std=None, note=f"{written.note}; no spread: {found}", unspread=found)
        return replace(written, std=self._deviation(self._query_spread(found), column), queries=found)

    def _query_spread(self, found: QuerySpread) -> float | None:
        """The standard error, or half the interval; None for both variances of a single run."""
        if self._layout.shown_spread == "ci95":
            return half_width(found, self._selected.covers)
        if self._selected.covers == "queries":
            return math.sqrt(found.between)
        return math.sqrt(found.both) if found.runs > 1 else None

    def difference(self, summary: CellSummary, other: CellSummary | None, column: Column) -> TableCell:
        """The printed cell of a difference: a metric of the cell minus that of `other`, from unrounded means."""
        mark = _cell_mark(summary)
        if mark is not None and mark != "partial":
            return self._without_value(summary, mark)
        if other is None or other.cell == summary.cell:
            return self._absent("compared with no other cell", summary.cell)
        theirs = _cell_mark(other)
        if theirs == "pending":
            return self._without_value(summary, theirs)
        mine, base = summary.metrics.get(column.key), other.metrics.get(column.key)
        if column.key.rpartition("/")[2] in (*summary.coming, *other.coming) and (mine is None or base is None):
            return self._coming(summary)
        if mine is None or base is None:
            return self._absent("the cell that it is compared with has no value", summary.cell)
        labels = ", ".join(f"{axis} = {label}" for axis, label in (column.delta or {}).items())
        note = f"above {labels}, from unrounded {self._what}"
        centers = self._center(summary, column.key), self._center(other, column.key)
        return replace(self._between(summary, (mine, base), centers, column, note), mark=mark or theirs)

    def selection_gap(self, honest: CellSummary, tested: CellSummary, column: Column) -> TableCell:
        """The printed cell of the test-selection gap: the metric as selected on test minus as selected honestly."""
        marks = [mark for mark in (_cell_mark(tested), _cell_mark(honest)) if mark is not None]
        if (word := next((mark for mark in marks if mark != "partial"), None)) is not None:
            return self._without_value(tested, word)
        honest_key = self._selected.rule.checkpoint + column.key.removeprefix(BEST_TEST)
        above, below = tested.metrics.get(column.key), honest.metrics.get(honest_key)
        if above is None or below is None:
            return self._absent("one of the two selections has no value", tested.cell)
        note = f"selected on test - on validation, from unrounded {self._what}"
        centers = self._center(tested, column.key), self._center(honest, honest_key)
        return self._between(tested, (above, below), centers, column, note)

    def _between(
        self,
        summary: CellSummary,
        pair: tuple[Statistic, Statistic],
        centers: tuple[float | None, float | None],
        column: Column,
        note: str,
    ) -> TableCell:
        (above, below), (high, low) = pair, centers
        found = Statistic(above.mean - below.mean, None, min(above.n, below.n))
        return self._number(summary, found, column, note, None if high is None or low is None else high - low)

    def _printed_difference(self, summary: CellSummary, column: Column) -> TableCell:
        """A difference that was printed as such: `summary` has it under the name of the column."""
        mark = _cell_mark(summary)
        found = summary.metrics.get(column.name)
        if found is None:
            return self._without_value(summary, mark) if mark else self._absent("", summary.cell)
        return self._number(summary, found, column, _provenance(summary, found.n))

    def _tuned(self, summary: CellSummary, axis: str) -> TableCell:
        """The choice on a tune axis of the cell's selected candidate."""
        if summary.candidate is None:
            return TableCell("", cell=summary.cell)
        label = summary.labels.get(axis)
        if label is None:
            return self._absent(f"{axis} is not tuned here", summary.cell)
        note = f"{axis}, best of {summary.candidates} candidates" if summary.candidates else axis
        return TableCell(label, note=note, cell=summary.cell)

    def _without_value(self, summary: CellSummary, mark: Mark) -> TableCell:
        if mark == "failed" and summary.undefined:
            return self._absent(f"{summary.selection_key} has no value, by which candidates are selected", summary.cell)
        texts = {"pending": PENDING, "diverged": self._layout.diverged}
        note = mark_meaning(mark, self._selected.results.state)
        return TableCell(texts.get(mark, mark), mark=mark, note=note, cell=summary.cell)

    def _coming(self, summary: CellSummary) -> TableCell:
        note = "being evaluated of the weights that its trainings have kept"
        return TableCell(PENDING, mark="pending", note=note, cell=summary.cell)

    @property
    def _what(self) -> str:
        return "means" if self._layout.center == "mean" else f"{self._layout.center} values"

    def _center(self, summary: CellSummary, key: str) -> float | None:
        """What is printed of a result instead of its mean, as a fraction; None where the mean is, or nothing.

        A metric of which no value is better than another has no best value: its mean is printed.
        """
        metric, center = summary.metrics.get(key), self._layout.center
        if center == "mean" or metric is None or summary.candidate is None:
            return None
        runs = self._selected.runs.get((summary.cell, summary.candidate), ())
        values = list(run_values(runs, key).values())
        better = metric_facts(key.split("/", 2)[-1], self._selected.names.parts).better
        if not values or (center == "best" and better == "none"):
            return metric.mean
        if center == "median":
            return statistics.median(values)
        return max(values) if better == "higher" else min(values)

    def _deviation(self, spread: float | None, column: Column) -> str | None:
        return printed_spread(spread, column.unit, column.decimals, self._layout.deviation)

    def _number(
        self, summary: CellSummary, found: Statistic, column: Column, note: str, center: float | None = None
    ) -> TableCell:
        std = self._deviation(spread_of(found, self._layout.shown_spread), column)
        value = found.mean if center is None else center
        return TableCell(
            text=printed(value, column.unit, column.decimals, signed=column.signed),
            std=std,
            mark=_cell_mark(summary),
            note=note,
            statistic=found,
            cell=summary.cell,
            center=center,
        )


def _spanned(cells: Sequence[TableCell]) -> tuple[TableCell, ...]:
    """The cells of a row, in which one word stands for all that the same diverged cell has side by side."""
    found: list[TableCell] = []
    first = 0
    for at, cell in enumerate(cells):
        if at and cell.mark == "diverged" and cell.cell == found[first].cell and found[first].mark == "diverged":
            found[first] = replace(found[first], span=found[first].span + 1)
            found.append(replace(cell, span=0))
        else:
            first = at
            found.append(cell)
    return tuple(found)


def _cell_mark(summary: CellSummary) -> Mark | None:
    """The mark of a cell by how far it has come."""
    match summary.status:
        case "complete":
            return None
        case "failed" | "diverged":
            return summary.status
        case "partial" if summary.candidate is not None:
            return "partial"
        case _:
            return "pending"


def _provenance(summary: CellSummary, n: int) -> str:
    labels = [f"{axis} = {label}" for axis, label in summary.labels.items()]
    if not n:
        return ", ".join(["as printed", *labels])
    repeats = "1 run" if n == 1 else f"mean of {n} runs"
    return f"{repeats}; {', '.join(labels)}, best of {summary.candidates}" if labels else repeats


@dataclass(frozen=True, slots=True)
class Contender:
    """A number that may be printed bold, or the place of a missing number, in its block of comparable numbers."""

    place: Place
    block: Hashable
    better: str  # higher, lower or none
    text: str | None  # the printed mean; None where there is no number
    settled: bool  # whether it can no longer change


def best(contenders: Iterable[Contender]) -> set[Place]:
    """The places of bold numbers: the best printed value, with all ties, of each settled block of two or more."""
    blocks: dict[Hashable, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.better != "none":
            blocks[one.block].append(one)
    return {place for block in blocks.values() for place in _best_of(block)}


def _best_of(block: list[Contender]) -> list[Place]:
    values = [(Decimal(one.text), one.place) for one in block if one.text is not None]
    if len(block) < 2 or not values or not all(one.settled for one in block):
        return []
    numbers = [value for value, _ in values]
    top = max(numbers) if block[0].better == "higher" else min(numbers)
    return [place for value, place in values if value == top]


def find_doubts(
    contenders: Iterable[Contender], winners: Collection[Place], runs: Callable[[Place], Mapping[Repeat, float]]
) -> dict[Place, str]:
    """A sentence for each bold number whose lead over the best rival may be noise, by its place."""
    rivals = dict(_rivals(contenders, winners))
    found = {place: compare(runs(place), runs(rival), 0, "t") for place, rival in rivals.items()}
    doubts_by_place = {place: _doubt(one) for place, one in holm(found).items()}
    return {place: words for place, words in doubts_by_place.items() if words}


def _rivals(contenders: Iterable[Contender], winners: Collection[Place]) -> Iterator[tuple[Place, Place]]:
    """Each bold number with the best of the others of its block."""
    blocks: dict[Hashable, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.text is not None:
            blocks[one.block].append(one)
    for block in blocks.values():
        sign = 1 if block[0].better == "higher" else -1
        ranked = sorted(block, key=lambda one: -sign * Decimal(one.text or 0))
        for one in ranked:
            if one.place in winners and len(ranked) > 1:
                yield one.place, ranked[1 if one is ranked[0] else 0].place


def _doubt(one: Comparison) -> str:
    if one.n < MIN_RUNS["t"]:
        runs = "no run" if not one.n else "1 run" if one.n == 1 else f"{one.n} runs"
        return f"whether it leads the next best cannot be tested: {runs} that both have, {MIN_RUNS['t']} are needed"
    if one.corrected is None:  # every difference is the same: a lead in every run, or none
        return "" if one.difference else "it does not differ from the next best in any run"
    if one.corrected < LEVEL:
        return ""
    return f"its lead over the next best may be noise: paired t-test over {one.n} runs, p = {one.corrected:.2g}"


def _emboldened(
    panels: Sequence[Panel], selected: Selection, block: frozenset[str], *, doubts: bool
) -> tuple[Panel, ...]:
    """The panels with the best of each block bold; with `doubts` marked where the lead may be noise."""
    contenders, keys = [], {}
    for place, row, column, cell in places(panels):
        if column.kind == "metric" and cell.cell is not None:
            labels = {**row.labels, **column.labels}
            where = sorted((axis, labels[axis]) for axis in block if axis in labels)
            within = (column.key, column.unit, column.decimals, *where)
            text = cell.text if cell.statistic else None
            settled = selected.shown[column.selection][cell.cell].status in SETTLED
            contenders.append(Contender(place, within, column.better, text, settled))
            keys[place] = column, cell.cell
    winners = best(contenders)

    def runs(place: Place) -> Mapping[Repeat, float]:
        column, cell = keys[place]
        return run_values(_runs(selected, column, cell), column.key)

    doubts_by_place = find_doubts(contenders, winners, runs) if doubts else {}

    def change(place: Place, _: Column, cell: TableCell) -> TableCell:
        return replace(cell, bold=True, doubt=doubts_by_place.get(place, "")) if place in winners else cell

    return changed(panels, change)


def _runs(selected: Selection, column: Column, cell: int) -> Sequence[TrialResult]:
    """The trials of the candidate that a column shows of a cell; empty where none is selected."""
    candidate = selected.shown[column.selection][cell].candidate
    return () if candidate is None else selected.runs.get((cell, candidate), ())


def _usual_count(panels: Sequence[Panel]) -> int | None:
    """The number of runs that most cells have, the larger of equals; None where no cell has a number."""
    counts = {
        cell.cell: cell.statistic.n
        for _, _, column, cell in places(panels)
        if column.plain and cell.statistic and cell.statistic.n
    }
    return max(((times, n) for n, times in Counter(counts.values()).items()), default=(0, None))[1]


def _marked(selected: Selection, usual: int | None, column: Column, cell: TableCell) -> TableCell:
    """A number with the number of its runs where that is not the usual one, and with what differs between its runs."""
    if cell.cell is None or cell.statistic is None:
        return cell
    when, n = selected.layout.counts, cell.statistic.n
    shown = column.plain and n and (when == "always" or (when == "differ" and n != usual))
    candidate = selected.shown[column.selection][cell.cell].candidate
    mixed = "" if candidate is None else selected.mixed.get((cell.cell, candidate), "")
    return replace(cell, count=n if shown else None, mixed=mixed) if shown or mixed else cell


def _comparisons(panels: Sequence[Panel], selected: Selection, writer: EntryWriter) -> Mapping[Compared, Comparison]:
    """The comparisons of cells with their baselines, corrected over all of them."""
    layout = selected.layout
    found: dict[Compared, Comparison] = {}
    for _, _, column, cell in places(panels):
        if not column.plain or cell.cell is None or cell.statistic is None:
            continue
        base = writer.baseline(column, layout.against or {}, cell.cell)
        own = selected.shown[column.selection][cell.cell]
        if base is None or base.cell == own.cell or not own.status == base.status == "complete":
            continue
        mine, theirs = (run_values(_runs(selected, column, one.cell), column.key) for one in (own, base))
        found[cell.cell, column.selection, column.key] = compare(mine, theirs, base.cell, layout.test)
    return holm(found)


def _compared(comparisons: Mapping[Compared, Comparison], column: Column, cell: TableCell) -> TableCell:
    found = None
    if column.plain and cell.cell is not None:
        found = comparisons.get((cell.cell, column.selection, column.key))
    return replace(cell, comparison=found) if found else cell


_SHADES: Final = 7
"""Shades from the worst to the best number of a column."""


def counts_by_cell(results: SweepResults) -> dict[int, Counts]:
    """Counts the trials of each cell by state."""
    found: dict[int, Counts] = {cell.index: Counts() for cell in results.cells}
    for trial in results.trials:
        counts = found[trial.cell]
        setattr(counts, trial.state, getattr(counts, trial.state) + 1)
    return found


def shaded(table: Table, heat: Heat, counts: Mapping[int, Counts]) -> Table:
    """The table for a page: each cell with its colour class, and with the number of finished trials."""
    shades = dict(_shades(table.panels)) if heat == "metric" else {}

    def change(place: Place, _: Column, cell: TableCell) -> TableCell:
        known = counts.get(cell.cell) if cell.cell is not None else None
        shade = f"heat-{shades[place]}" if place in shades else ""
        if known is None:
            return replace(cell, shade=shade)
        text = f"{known.done} of {known.total} trials done"
        text += "".join(f", {n} {word}" for word in ("running", "failed", "cancelled") if (n := getattr(known, word)))
        waits = cell.mark == "pending" and known.ended < known.total
        return replace(
            cell,
            shade=f"state-{_state(known)}" if heat == "state" else shade,
            note="; ".join(filter(None, (cell.note, text))),
            text=f"{known.done}/{known.total}" if waits else cell.text,
        )

    return replace(table, panels=changed(table.panels, change))


def _shades(panels: Sequence[Panel]) -> Iterator[tuple[Place, int]]:
    """Where each number lies between the worst and the best of its column."""
    columns: dict[Place, list[tuple[Place, float]]] = defaultdict(list)
    for place, _, column, cell in places(panels):
        if column.better != "none" and cell.statistic is not None:
            mean = cell.statistic.mean
            columns[place[0], place[2]].append((place, mean if column.better == "higher" else -mean))
    for column_values in columns.values():
        low, high = (extreme(value for _, value in column_values) for extreme in (min, max))
        for place, value in column_values if low < high else ():
            yield place, round((value - low) / (high - low) * (_SHADES - 1))


def _state(counts: Counts) -> str:
    """What of a cell's trials a person wants to see first."""
    for state in ("failed", "running", "cancelled"):
        if getattr(counts, state):
            return state
    return "finished" if counts.done == counts.total else "waiting" if not counts.done else "begun"
