"""The printed cells of a table: which runs stand for a number, how it is printed, what is bold, marked or shaded."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal

from orchestrator.publish.aggregate import Place, Repeat, half_interval, run_values, standard_error
from orchestrator.publish.labels import metric_better
from orchestrator.publish.tables.evidence import QueryEvidence
from orchestrator.publish.tables.table_data import PENDING, SETTLED, Column, Mark, Panel, Table, TableCell
from orchestrator.publish.verdicts.judge import QuerySpread, half_width
from orchestrator.publish.verdicts.significance import LEVEL, MIN_RUNS, Comparison, Test, compare, holm
from orchestrator.spec.layouts import Center, Covers, Deviation, Spread, TableSpec
from orchestrator.views.errors import timely
from orchestrator.views.runs import CellSummary, Statistic, SweepOutcomes, TrialOutcome, mixture
from orchestrator.views.states import SWEEP_ENDED, TrialState
from orchestrator.views.sweeps import Counts, Heat
from orchestrator.views.tables import printed
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Contender:
    """A printed number, or the place of one, in its block."""

    place: tuple[int, ...]
    block: Hashable
    better: str  # higher, lower or none
    text: str | None  # the printed mean; none where there is none
    settled: bool  # whether it can no longer change


def best(contenders: Iterable[Contender]) -> set[tuple[int, ...]]:
    """The places to print bold: all that tie on the best printed value of a settled block of two or more."""
    blocks: dict[Hashable, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.better != "none":
            blocks[one.block].append(one)
    return {place for block in blocks.values() for place in _best_of(block)}


def _best_of(block: list[Contender]) -> list[tuple[int, ...]]:
    values = [(Decimal(one.text), one.place) for one in block if one.text is not None]
    if len(block) < 2 or not values or not all(one.settled for one in block):
        return []
    numbers = [value for value, _ in values]
    top = max(numbers) if block[0].better == "higher" else min(numbers)
    return [place for value, place in values if value == top]


@dataclass(frozen=True, slots=True)
class Centers:
    """Looks at the runs of selected candidates."""

    center: Center
    runs: Mapping[Place, Sequence[TrialOutcome]]  # of the selected candidates
    parts: Catalog

    def of(self, summary: CellSummary, key: str) -> float | None:
        """What stands for the result `key` in a cell, as a fraction; none where it has no runs of its own.

        A metric of which no value is better than another has no best one: its mean stands.
        """
        metric = summary.metrics.get(key)
        if metric is None or summary.candidate is None:
            return None
        values = list(run_values(self.runs.get((summary.cell, summary.candidate), ()), key).values())
        better = metric_better(key.split("/", 2)[-1], self.parts)
        if not values or self.center == "mean" or (self.center == "best" and better == "none"):
            return metric.mean
        if self.center == "median":
            return statistics.median(values)
        return max(values) if better == "higher" else min(values)


@dataclass(frozen=True, slots=True)
class Cover:
    """Looks at the runs of selected candidates query by query."""

    covers: Covers
    evidence: QueryEvidence
    runs: Mapping[Place, Sequence[TrialOutcome]]  # of the selected candidates

    def of(self, summary: CellSummary, column: Column) -> QuerySpread | str:
        """How the queries of a cell vary, or why that is not known."""
        runs = self.runs.get((summary.cell, summary.candidate or 0), ())
        valued = [one for one in runs if math.isfinite(one.values.get(column.key, math.nan)) and not one.diverged]
        return self.evidence.of(column, [(one, None) for one in valued])

    def width(self, found: QuerySpread, shown: Spread) -> float | None:
        """The standard error, or half the interval; none for both variances of a single run."""
        if shown == "ci95":
            return half_width(found, self.covers)
        if self.covers == "queries":
            return math.sqrt(found.between)
        return math.sqrt(found.both) if found.runs > 1 else None


CellPlace = tuple[int, ...]
SIGN: Final = "≈"
MEANING: Final = (
    "bold, but its lead over the next best may be noise: a two-sided paired t-test over the runs that both have, "
    f"Holm-corrected over the table, does not tell them apart at the level {LEVEL} (point at the number for the words)"
)


def doubts(
    contenders: Iterable[Contender], winners: Collection[CellPlace], runs: Callable[[CellPlace], Mapping[Repeat, float]]
) -> dict[CellPlace, str]:
    """By the place of each bold number that may owe its rank to noise: why, in a sentence."""
    rivals = dict(_rivals(contenders, winners))
    found = {place: compare(runs(place), runs(rival), 0, "t") for place, rival in rivals.items()}
    said = {place: _said(one) for place, one in holm(found).items()}
    return {place: words for place, words in said.items() if words}


def _rivals(contenders: Iterable[Contender], winners: Collection[CellPlace]) -> Iterable[tuple[CellPlace, CellPlace]]:
    """Each bold number with the best of its block beside itself."""
    blocks: dict[object, list[Contender]] = defaultdict(list)
    for one in contenders:
        if one.text is not None:
            blocks[one.block].append(one)
    for block in blocks.values():
        sign = 1 if block[0].better == "higher" else -1
        ranked = sorted(block, key=lambda one: -sign * Decimal(one.text or 0))
        for one in ranked:
            if one.place in winners and len(ranked) > 1:
                yield one.place, ranked[1 if one is ranked[0] else 0].place


def _said(one: Comparison) -> str:
    if one.n < MIN_RUNS["t"]:
        runs = "no run" if not one.n else "1 run" if one.n == 1 else f"{one.n} runs"
        return f"whether it leads the next best cannot be tested: {runs} that both have, {MIN_RUNS['t']} are needed"
    if one.corrected is None:  # all differences alike: a lead in every run, or none
        return "" if one.difference else "it does not differ from the next best in any run"
    if one.corrected < LEVEL:
        return ""
    return f"its lead over the next best may be noise: paired t-test over {one.n} runs, p = {one.corrected:.2g}"


Chosen = Callable[[Column, int], CellSummary]
"""A cell with the candidate that a column shows."""
Runs = Mapping[Place, Sequence[TrialOutcome]]


def embolden(panels: Sequence[Panel], block: frozenset[str], chosen: Chosen, runs: Runs | None) -> tuple[Panel, ...]:
    """The panels with the best of each block bold; with `runs` those are marked whose lead may be noise."""
    contenders = list(_contenders(panels, block, chosen))
    winners = best(contenders)
    said = {} if runs is None else doubts(contenders, winners, lambda at: _values(panels, chosen, runs, at))
    return tuple(
        replace(
            panel,
            rows=tuple(
                replace(
                    row,
                    cells=tuple(
                        replace(cell, bold=(p, r, c) in winners, doubt=said.get((p, r, c), ""))
                        for c, cell in enumerate(row.cells)
                    ),
                )
                for r, row in enumerate(panel.rows)
            ),
        )
        for p, panel in enumerate(panels)
    )


def doubted(panels: Sequence[Panel]) -> bool:
    """Whether a number is marked."""
    return any(cell.doubt for panel in panels for row in panel.rows for cell in row.cells)


def _contenders(panels: Sequence[Panel], block: frozenset[str], chosen: Chosen) -> Iterator[Contender]:
    for p, panel in enumerate(panels):
        for r, row in enumerate(panel.rows):
            for c, (column, cell) in enumerate(zip(panel.columns, row.cells, strict=True)):
                if column.kind == "metric" and cell.cell is not None:
                    labels = {**row.labels, **column.labels}
                    where = sorted((axis, labels[axis]) for axis in block if axis in labels)
                    within = (column.key, column.unit, column.decimals, *where)
                    text = cell.text if cell.statistic else None
                    settled = chosen(column, cell.cell).status in SETTLED
                    yield Contender((p, r, c), within, column.better, text, settled)


def _values(panels: Sequence[Panel], chosen: Chosen, runs: Runs, at: tuple[int, ...]) -> Mapping[Repeat, float]:
    """The values of the runs behind a number, by repeat."""
    p, r, c = at
    column, cell = panels[p].columns[c], panels[p].rows[r].cells[c].cell
    summary = None if cell is None else chosen(column, cell)
    if summary is None or summary.candidate is None:
        return {}
    return run_values(runs.get((summary.cell, summary.candidate), ()), column.key)


PARTIAL_SIGN: Final = "*"
"""What follows a `partial` number."""


@dataclass(frozen=True, slots=True)
class EntryWriter:
    """Writes the cells of one table."""

    std: Deviation | None
    missing: str
    marks: dict[Mark, str]  # what is printed in place of a number
    state: str  # of the sweep
    spread: Spread = "std"
    centers: Centers | None = None  # where the mean is not what is printed
    cover: Cover | None = None  # where spreads cover test queries

    @classmethod
    def of(
        cls, layout: TableSpec, state: str, centers: Centers | None = None, cover: Cover | None = None
    ) -> "EntryWriter":
        """The writer for a layout."""
        marks: dict[Mark, str] = {"pending": PENDING, "failed": "failed", "diverged": layout.diverged}
        return cls(layout.deviation, layout.missing, marks, state, layout.shown_spread, centers, cover)

    def absent(self, note: str, cell: int | None = None) -> TableCell:
        """A place without a number, now and later."""
        return TableCell(self.missing, note=note, cell=cell)

    def value(self, summary: CellSummary, column: Column) -> TableCell:
        """A metric of the cell's selected candidate, mean and (if asked for) standard deviation."""
        mark = cell_mark(summary)
        if mark is not None and mark != "partial":
            return self._marked(summary, mark)
        metric = summary.metrics.get(column.key)
        if metric is None and column.key.rpartition("/")[2] in summary.coming:
            return self._coming(summary)
        if metric is None:
            why = "has no value" if column.key in summary.undefined else "was not computed in every repeat"
            note = f"{column.key} {why}" if summary.candidate is not None else ""
            return replace(self.absent(note, summary.cell), mark=mark)
        center = self._center(summary, column.key)
        written = self._number(summary, metric, column, _provenance(summary, metric.n), center)
        return self._covering(written, summary, column) if self.cover is not None else written

    def _covering(self, written: TableCell, summary: CellSummary, column: Column) -> TableCell:
        """A number whose spread covers test queries, or has a word on why there is none."""
        cover = self.cover
        if cover is None or self.std is None:
            return written
        found = cover.of(summary, column)
        if isinstance(found, str):
            return replace(written, std=None, note=f"{written.note}; no spread: {found}", unspread=found)
        spread = cover.width(found, self.spread)
        return replace(written, std=None if spread is None else self._deviation(spread, column), queries=found)

    def difference(self, summary: CellSummary, other: CellSummary | None, column: Column) -> TableCell:
        """By how much a metric of the cell is above that of `other`, from unrounded means."""
        mark = cell_mark(summary)
        if mark is not None and mark != "partial":
            return self._marked(summary, mark)
        if other is None or other.cell == summary.cell:
            return self.absent("compared with no other cell", summary.cell)
        theirs = cell_mark(other)
        if theirs == "pending":
            return self._marked(summary, theirs)
        mine, base = summary.metrics.get(column.key), other.metrics.get(column.key)
        if column.key.rpartition("/")[2] in (*summary.coming, *other.coming) and (mine is None or base is None):
            return self._coming(summary)
        if mine is None or base is None:
            return self.absent("the cell that it is compared with has no value", summary.cell)
        difference = Statistic(mine.mean - base.mean, None, min(mine.n, base.n))
        above = _minus(self._center(summary, column.key), self._center(other, column.key))
        written = self._number(
            summary, difference, column, f"above {_labelled(column)}, from unrounded {self._what}", above
        )
        return replace(written, mark=mark or theirs)

    def flattery(self, honest: CellSummary, tested: CellSummary, honest_key: str, column: Column) -> TableCell:
        """By how much a metric at the choice on the test split is above that at the honest one."""
        marks = [mark for mark in (cell_mark(tested), cell_mark(honest)) if mark is not None]
        if (word := next((mark for mark in marks if mark != "partial"), None)) is not None:
            return self._marked(tested, word)
        above, below = tested.metrics.get(column.key), honest.metrics.get(honest_key)
        if above is None or below is None:
            return self.absent("one of the two selections has no value", tested.cell)
        found = Statistic(above.mean - below.mean, None, min(above.n, below.n))
        center = _minus(self._center(tested, column.key), self._center(honest, honest_key))
        note = f"selected on test - on validation, from unrounded {self._what}"
        return self._number(tested, found, column, note, center)

    def difference_told(self, summary: CellSummary, column: Column) -> TableCell:
        """A difference that was printed as such: `summary` has it under the name of the column."""
        mark = cell_mark(summary)
        found = summary.metrics.get(column.name)
        if found is None:
            return self._marked(summary, mark) if mark else self.absent("", summary.cell)
        return self._number(summary, found, column, _provenance(summary, found.n))

    def tuned(self, summary: CellSummary, axis: str) -> TableCell:
        """The choice on a tune axis of the cell's selected candidate."""
        if summary.candidate is None:
            return TableCell("", cell=summary.cell)
        label = summary.labels.get(axis)
        if label is None:
            return self.absent(f"{axis} is not tuned here", summary.cell)
        note = f"{axis}, best of {summary.candidates} candidates" if summary.candidates else axis
        return TableCell(label, note=note, cell=summary.cell)

    def _marked(self, summary: CellSummary, mark: Mark) -> TableCell:
        if mark == "failed" and summary.undefined:
            return self.absent(f"{summary.selection_key} has no value, by which candidates are selected", summary.cell)
        return TableCell(self.marks[mark], mark=mark, note=mark_meaning(mark, self.state), cell=summary.cell)

    def _coming(self, summary: CellSummary) -> TableCell:
        note = "being evaluated of the weights that its trainings have kept"
        return TableCell(self.marks["pending"], mark="pending", note=note, cell=summary.cell)

    @property
    def _what(self) -> str:
        return "means" if self.centers is None else f"{self.centers.center} values"

    def _center(self, summary: CellSummary, key: str) -> float | None:
        return None if self.centers is None else self.centers.of(summary, key)

    def spread_of(self, found: Statistic) -> float | None:
        """What stands after a number; what a paper printed there stays as it is."""
        if self.spread == "none":
            return None
        if self.spread == "std" or not found.n:
            return found.std
        return standard_error(found) if self.spread == "se" else half_interval(found)

    def _deviation(self, spread: float, column: Column) -> str | None:
        if self.std is None:
            return None
        decimals = column.decimals if self.std.decimals is None else self.std.decimals
        return printed(spread, self.std.unit or column.unit, decimals)

    def _number(
        self, summary: CellSummary, found: Statistic, column: Column, note: str, center: float | None = None
    ) -> TableCell:
        spread = self.spread_of(found)
        deviation = None if spread is None else self._deviation(spread, column)
        value = found.mean if center is None else center
        return TableCell(
            text=printed(value, column.unit, column.decimals, signed=column.signed),
            std=deviation,
            mark=cell_mark(summary),
            note=note,
            statistic=found,
            cell=summary.cell,
            center=center,
        )


def spanned(cells: Sequence[TableCell]) -> tuple[TableCell, ...]:
    """The cells of a row, in which one word stands for all that the same diverged cell has side by side."""
    found: list[TableCell] = []
    first = 0
    for at, cell in enumerate(timely(cells)):
        if at and cell.mark == "diverged" and cell.cell == found[first].cell and found[first].mark == "diverged":
            found[first] = replace(found[first], span=found[first].span + 1)
            found.append(replace(cell, span=0))
        else:
            first = at
            found.append(cell)
    return tuple(found)


def cell_mark(summary: CellSummary) -> Mark | None:
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


def mark_meaning(mark: Mark, state: str) -> str:
    """What a mark says, in words; a sweep that has ended will not fill its gaps by itself."""
    match mark:
        case "pending":
            return "not run" if state in SWEEP_ENDED else "not finished yet"
        case "partial":
            return "provisional, the best of the candidates finished so far"
        case "failed":
            return "no candidate finished in every repeat"
        case "diverged":
            return "the loss became NaN in every candidate"


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _labelled(column: Column) -> str:
    return ", ".join(f"{axis} = {label}" for axis, label in (column.delta or {}).items())


def _provenance(summary: CellSummary, n: int) -> str:
    if not n:
        words = ["as printed", *(f"{axis} = {label}" for axis, label in summary.labels.items())]
        return ", ".join(words)
    repeats = "1 run" if n == 1 else f"mean of {n} runs"
    tuned = ", ".join(f"{axis} = {label}" for axis, label in summary.labels.items())
    chosen = f"; {tuned}, best of {summary.candidates}" if tuned else ""
    return repeats + chosen


Beside = tuple[CellSummary, CellSummary]
"""A cell and its baseline."""

_Asked = tuple[int, str | None, str]  # the cell, by what it is selected, the result key


def counted(panels: Sequence[Panel], when: Literal["differ", "always", "never"]) -> tuple[Panel, ...]:
    """The panels with the number of runs in those cells where it is not the usual one; in all, or in none."""
    usual = usual_count(panels)
    if when == "never" or usual is None:
        return tuple(panels)

    def change(column: Column, cell: TableCell) -> TableCell:
        n = _count(column, cell)
        return replace(cell, count=n) if n and (when == "always" or n != usual) else cell

    return tuple(_changed(panel, change) for panel in panels)


def usual_count(panels: Sequence[Panel]) -> int | None:
    """The number of runs that most cells have, the larger of equals; none where there are none."""
    found = {cell.cell: n for column, cell in _places(panels) if (n := _count(column, cell))}
    return max(((times, n) for n, times in Counter(found.values()).items()), default=(0, None))[1]


def mixed(
    panels: Sequence[Panel],
    chosen: Callable[[Column, int], CellSummary],
    runs: Mapping[Place, Sequence[TrialOutcome]],
) -> tuple[Panel, ...]:
    """The panels with a mark on each number whose runs differ in data, code or versions of parts."""
    known: dict[Place, str] = {}

    def change(column: Column, cell: TableCell) -> TableCell:
        summary = None if cell.cell is None or cell.statistic is None else chosen(column, cell.cell)
        if summary is None or summary.candidate is None:
            return cell
        place = summary.cell, summary.candidate
        if place not in known:
            finished = (one for one in runs.get(place, ()) if one.state is TrialState.FINISHED)
            known[place] = "; ".join(mixture(finished))
        return replace(cell, mixed=known[place]) if known[place] else cell

    return tuple(_changed(panel, change) for panel in panels)


def compared(
    panels: Sequence[Panel],
    beside: Callable[[Column, int], Beside | None],
    runs: Mapping[Place, Sequence[TrialOutcome]],
    test: Test,
) -> tuple[Panel, ...]:
    """The panels whose metric cells know how they compare with their baselines, corrected over all of them."""
    comparisons: dict[_Asked, Comparison] = {}
    for column, cell in _places(panels):
        if cell.cell is None or cell.statistic is None or (pair := beside(column, cell.cell)) is None:
            continue
        own, other = (run_values(runs.get((one.cell, one.candidate or 0), ()), column.key) for one in pair)
        comparisons[_asked(column, cell.cell)] = compare(own, other, pair[1].cell, test)
    corrected = holm(comparisons)

    def change(column: Column, cell: TableCell) -> TableCell:
        known = corrected.get(_asked(column, cell.cell)) if cell.cell is not None and _own(column) else None
        return replace(cell, comparison=known) if known else cell

    return tuple(_changed(panel, change) for panel in panels)


def _own(column: Column) -> bool:
    """Whether a column shows a metric itself."""
    return column.kind == "metric" and column.delta is None


def _asked(column: Column, cell: int) -> _Asked:
    # A metric that stands twice, in other units, is one comparison.
    return cell, column.selection, column.key


def _count(column: Column, cell: TableCell) -> int:
    return cell.statistic.n if _own(column) and cell.statistic is not None else 0


def _places(panels: Sequence[Panel]) -> Iterator[tuple[Column, TableCell]]:
    for panel in panels:
        for row in panel.rows:
            yield from ((one, cell) for one, cell in zip(panel.columns, row.cells, strict=True) if _own(one))


def _changed(panel: Panel, change: Callable[[Column, TableCell], TableCell]) -> Panel:
    rows = (
        replace(row, cells=tuple(change(*pair) for pair in zip(panel.columns, row.cells, strict=True)))
        for row in panel.rows
    )
    return replace(panel, rows=tuple(rows))


LEVELS: Final = 7
"""Shades from the worst to the best number of a column."""


def shaded(table: Table, heat: Heat, counts: Mapping[int, Counts]) -> Table:
    """The table with the class of each cell's shade; a number that is to come says how many of its trials are done."""
    return replace(table, panels=tuple(_panel(panel, heat, counts) for panel in table.panels))


def counts_by_cell(outcomes: SweepOutcomes) -> dict[int, Counts]:
    """The trials of each cell by state."""
    found: dict[int, Counts] = {cell.index: Counts() for cell in outcomes.cells}
    for trial in outcomes.trials:
        counts = found[trial.cell]
        setattr(counts, trial.state, getattr(counts, trial.state) + 1)
    return found


def _panel(panel: Panel, heat: Heat, counts: Mapping[int, Counts]) -> Panel:
    levels = [_levels(panel, at, column) for at, column in enumerate(panel.columns)] if heat == "metric" else []
    rows = []
    for r, row in enumerate(panel.rows):
        cells = []
        for c, cell in enumerate(row.cells):
            known = counts.get(cell.cell) if cell.cell is not None else None
            shade = f"heat-{levels[c][r]}" if levels and levels[c].get(r) is not None else ""
            if heat == "state" and known is not None:
                shade = f"state-{_state(known)}"
            cells.append(_filled(replace(cell, shade=shade), known))
        rows.append(replace(row, cells=tuple(cells)))
    return replace(panel, rows=tuple(rows))


def _levels(panel: Panel, at: int, column: Column) -> dict[int, int]:
    """By row, where the number of a column lies between its worst and its best."""
    if column.better == "none":
        return {}
    cells = [(r, row.cells[at].statistic) for r, row in enumerate(panel.rows)]
    values = {r: found.mean if column.better == "higher" else -found.mean for r, found in cells if found is not None}
    if len(values) < 2 or (low := min(values.values())) == (high := max(values.values())):
        return {}
    return {r: round((value - low) / (high - low) * (LEVELS - 1)) for r, value in values.items()}


def _filled(cell: TableCell, counts: Counts | None) -> TableCell:
    if counts is None:
        return cell
    said = f"{counts.done} of {counts.total} trials done"
    said += "".join(f", {n} {word}" for word in ("running", "failed", "cancelled") if (n := getattr(counts, word)))
    note = "; ".join(filter(None, (cell.note, said)))
    text = f"{counts.done}/{counts.total}" if cell.mark == "pending" and counts.ended < counts.total else cell.text
    return replace(cell, text=text, note=note)


def _state(counts: Counts) -> str:
    """What of a cell's trials a person wants to see first."""
    for state in ("failed", "running", "cancelled"):
        if getattr(counts, state):
            return state
    return "finished" if counts.done == counts.total else "waiting" if not counts.done else "begun"
