"""One place of a table's body: the number, or the word that stands for it, and a line on where it comes from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.publish.statistics import half_interval, standard_error
from orchestrator.publish.tables.centers import Centers
from orchestrator.publish.tables.cover import Cover
from orchestrator.publish.tables.table_data import PENDING, Column, Mark, TableCell
from orchestrator.spec.table import Deviation, Spread, TableSpec
from orchestrator.views.deadline import timely
from orchestrator.views.lifecycle import SWEEP_ENDED
from orchestrator.views.outcomes import CellSummary, Statistic
from orchestrator.views.printing import printed

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
