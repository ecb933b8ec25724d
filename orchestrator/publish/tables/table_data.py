"""A table before it has a format: panels of headings, rows and cells, and the words that stand with them."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Final, Literal, NamedTuple

from orchestrator.publish.aggregate import Age
from orchestrator.publish.papers import PublishedTable
from orchestrator.publish.verdicts.judge import CellVerdict, QuerySpread
from orchestrator.publish.verdicts.significance import Comparison, ImportedComparison
from orchestrator.spec.layouts import TableSpec, Unit
from orchestrator.views.errors import timely
from orchestrator.views.evidence import PublishedNumber
from orchestrator.views.runs import NO_SWEEP, CellSummary, Labels, Statistic
from orchestrator.views.states import SWEEP_ENDED
from orchestrator.views.tables import printed

Word = Literal["reproduced", "above", "below", "no spread", "not run", "failed", "diverged"]
"""How an own number compares with a published number."""

Mark = Literal["pending", "partial", "failed", "diverged"]
"""Why a cell has no value, or (`partial`) why its value may still change."""


def mark_meaning(mark: Mark, state: str) -> str:
    """The meaning of a mark in a table, in words; it depends on whether the sweep has ended."""
    match mark:
        case "pending":
            return "not run" if state in SWEEP_ENDED else "not finished yet"
        case "partial":
            return "provisional, the best of the candidates finished so far"
        case "failed":
            return "no candidate finished in every repeat"
        case "diverged":
            return "the loss became NaN in every candidate"


Numbers = Literal["own", "published", "difference", "both", "verdict"]
"""Which numbers a table shows: the sweep's, the paper's, own - published, both next to each other, or own with a word
on each."""

Selected = Literal["validation", "test"]
"""On which split a cell's candidate and a training's checkpoint are chosen."""

PENDING: Final = "…"
"""What is printed for a number or a label that is still to come."""

PARTIAL_SIGN: Final = "*"
"""What follows a `partial` number."""

DOUBT_SIGN: Final = "≈"
"""What follows a bold number whose lead may be noise."""

MIXED_SIGN: Final = "◊"
"""What follows a number whose runs were trained with different data, code or versions of parts."""

ARROWS: Final[Mapping[str, str]] = {"higher": " ↑", "lower": " ↓"}
"""What follows the title of a metric to say which values are better."""

SETTLED: Final = frozenset({"complete", "failed", "diverged"})
"""The statuses of a cell that will not change unless it is retried."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a table over `span` columns, or next to `span` rows."""

    text: str
    span: int = 1


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: numbers, verdicts, or the tuned values of one axis."""

    kind: Literal["metric", "tuned", "published", "difference", "verdict", "selection_gap"]
    name: str  # the metric as the spec names it (`delta:` before it for a difference), or the tune axis
    title: str
    labels: Labels  # of the column axes, as the spec writes them
    key: str = ""  # the result key of a metric
    unit: Unit = "number"
    decimals: int = 2
    better: str = "none"  # higher, lower or none
    signed: bool = False
    delta: Labels | None = None  # the labels that set apart the cell from which the difference is shown
    selection: Selected | None = None  # where the table shows two; None means the spec's
    over: str = ""  # the heading above this column and its neighbours
    over_queries: bool = False  # whether its metric is a mean over queries
    rule: str = ""  # how its metric is computed, where the title does not say so

    @property
    def split(self) -> str:
        """The split on which the column's metric is measured: `test` of `best/test/recall@1`; "" without a metric."""
        return self.key.partition("/")[2].partition("/")[0]

    @property
    def scale(self) -> int:
        """The factor from a fraction to the column's unit."""
        return 100 if self.unit == "percent" else 1

    @property
    def wordy(self) -> bool:
        """Whether the column holds words or labels rather than numbers."""
        return self.kind in {"tuned", "verdict"}

    def text_of(self, statistic: Statistic) -> str:
        """A mean and its deviation as the column prints them: `95.70 ± 0.86`."""
        numbers = [statistic.mean, *(() if statistic.std is None else (statistic.std,))]
        return " ± ".join(printed(number, self.unit, self.decimals) for number in numbers)

    @property
    def plain(self) -> bool:
        """Whether the column shows a metric itself, not a difference."""
        return self.kind == "metric" and self.delta is None


@dataclass(frozen=True, slots=True)
class Quotation:
    """A number of a paper at a place of the table, and how the own number compares; shares are fractions."""

    number: PublishedNumber
    word: Word | None = None  # None where nothing is compared
    difference: float | None = None  # own mean - published value
    tolerance: float | None = None  # how far apart they may be and still be `reproduced`


@dataclass(frozen=True, slots=True)
class ImportedValue:
    """An imported number of a table, and how it compares with the own number that it is tested against."""

    label: str  # of its row
    source: str
    statistic: Statistic  # unrounded, as a fraction; n is 0 where it is not known
    test: ImportedComparison | None = None


@dataclass(frozen=True, slots=True)
class TableCell:
    """A printed cell of a table. Numbers have ASCII digits and minus; a format may typeset them."""

    text: str
    std: str | None = None  # the spread that the table shows
    bold: bool = False
    mark: Mark | None = None
    note: str = ""  # one line on where the number comes from
    statistic: Statistic | None = None  # unrounded, as a fraction
    cell: int | None = None  # the sweep's cell; None where the sweep has none
    span: int = 1  # over how many columns the text stands; 0 means under the text of a cell to the left
    quotation: Quotation | None = None
    imported: ImportedValue | None = None
    center: float | None = None  # what is printed, unrounded, where it is not the mean
    count: int | None = None  # the number of runs, where it is printed
    comparison: Comparison | None = None  # with the baseline, run by run
    mixed: str = ""  # what differs between its runs: data, code, versions of parts
    doubt: str = ""  # why its lead may be noise, if it is bold and doubts are shown
    shade: str = ""  # the class of its colour on a page
    verdict: CellVerdict | None = None  # whether it is better than its baseline, where verdicts are shown
    verdict_summary: str = ""  # that verdict in a sentence
    judged: str = ""  # its mark, where marks stand for words
    queries: QuerySpread | None = None  # how its queries vary, where its spread covers them
    unspread: str = ""  # why it has no spread, where that should cover queries
    lone: bool = False  # the place of a difference between two sweeps, of which only one has this cell

    @property
    def numeric(self) -> bool:
        """Whether the cell prints a number: own, quoted from a paper, or imported."""
        quoted = self.cell is None and self.quotation is not None and self.quotation.number.value is not None
        return self.statistic is not None or quoted or self.imported is not None

    @property
    def after(self) -> str:
        """The small print behind the number: whether its runs differ, how it compares, and the number of runs."""
        mixed = MIXED_SIGN if self.mixed else ""
        sign = self.comparison.sign if self.comparison else ""
        return mixed + sign + self.judged + ("" if self.count is None else f"({self.count})")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table's panel."""

    headings: tuple[Heading | None, ...]  # by stub column; None where a heading above spans this row
    texts: tuple[str, ...]  # the same headings, repeated
    labels: Labels  # of the row axes, as the spec writes them
    rule: int | None  # the stub column from which a rule stands above; None means no rule
    cells: tuple[TableCell, ...]
    quoted: bool = False  # what a paper prints, and nothing of the sweep
    imported: int | None = None  # which of the rows that the layout imports, and nothing of the sweep


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of a table's cells under a common set of column headings."""

    groups: tuple[tuple[Heading, ...], ...]  # the levels above the column titles; spans cover the columns
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @property
    def titled(self) -> bool:
        """Whether the panel's columns have titles of their own, below the headings that they share."""
        return not self.groups or any(column.title for column in self.columns)


Place = tuple[int, ...]
"""The panel, row and column of a cell."""


def places(panels: Sequence[Panel]) -> Iterator[tuple[Place, TableRow, Column, TableCell]]:
    """Every cell of a table's panels in reading order, with its place, row and column."""
    for p, panel in enumerate(panels):
        for r, row in enumerate(panel.rows):
            for c, (column, cell) in enumerate(zip(panel.columns, row.cells, strict=True)):
                yield (p, r, c), row, column, cell


def changed(panels: Sequence[Panel], change: Callable[[Place, Column, TableCell], TableCell]) -> tuple[Panel, ...]:
    """Copies panels of a table, replacing each cell by the result of `change`."""
    cells = iter([change(place, column, cell) for place, _, column, cell in places(panels)])
    return tuple(
        replace(panel, rows=tuple(replace(row, cells=tuple(next(cells) for _ in row.cells)) for row in panel.rows))
        for panel in panels
    )


def split(panel: Panel, columns: Sequence[Sequence[Column]], rows: Sequence[Sequence[TableCell]]) -> Panel:
    """Copies a panel with several columns in place of each column, and with these cells; headings widen."""
    ends = [0, *accumulate(len(several) for several in columns)]

    def widened(level: Sequence[Heading]) -> tuple[Heading, ...]:
        edges = [0, *accumulate(heading.span for heading in level)]
        return tuple(
            replace(heading, span=ends[end] - ends[start])
            for heading, (start, end) in zip(level, pairwise(edges), strict=True)
        )

    return Panel(
        groups=tuple(widened(level) for level in panel.groups),
        columns=tuple(column for several in columns for column in several),
        rows=tuple(replace(row, cells=tuple(cells)) for row, cells in zip(panel.rows, rows, strict=True)),
    )


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark that occurs in a table, and its meaning."""

    symbol: str
    meaning: str


class Origin(NamedTuple):
    """The sweep and cell number from which a table's cell comes."""

    sweep: int
    cell: int


_MOST_SENTENCES: Final = 4
"""Sentences of a short caption after its title."""


@dataclass(frozen=True, slots=True)
class Words:
    """The texts around a table: title, caption sentences, notes and details."""

    title: str
    sentences: tuple[str, ...] = ()
    """What a paper's caption says, the most important first: metrics, seeds, selection, what bold means, warnings."""
    notes: tuple[str, ...] = ()
    """Exceptions and sources; every format shows them below the table."""
    details: tuple[str, ...] = ()
    """How the numbers were made; a page folds them, and LaTeX keeps them in comments."""
    full: bool = False
    """Whether the caption holds all of it."""

    @property
    def caption(self) -> str:
        """The caption of the table: its title and four sentences, or all sentences if `full`."""
        shown = (*self.sentences, *self.details) if self.full else self.sentences[:_MOST_SENTENCES]
        return " ".join((self.title, *shown))

    @property
    def below(self) -> tuple[str, ...]:
        """The texts below the table: the sentences that the caption leaves out, and the notes."""
        return self.notes if self.full else (*self.sentences[_MOST_SENTENCES:], *self.notes)

    @property
    def folded(self) -> tuple[str, ...]:
        """The details on how the table was made, which a page folds away; empty if `full`."""
        return () if self.full else self.details

    @property
    def text(self) -> str:
        """The caption and the texts below the table in one, for a place that shows no table."""
        return " ".join((self.caption, *self.below))

    def with_notes(self, *notes: str) -> "Words":
        """A copy with further notes below the table."""
        return replace(self, notes=(*self.notes, *(one for one in notes if one)))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a sweep as printed cells and words, with everything that a format needs."""

    name: str
    sweep: int  # NO_SWEEP: only a spec, whose layout it has
    sweep_name: str
    state: str
    layout: TableSpec
    stub: tuple[str, ...]  # the titles of the row headings
    panels: tuple[Panel, ...]
    words: Words
    legend: tuple[LegendEntry, ...]
    summaries: Mapping[int, CellSummary]  # by cell
    tested: Mapping[int, CellSummary]  # the same chosen on test, where it shows that
    numbers: Numbers = "own"
    published: PublishedTable | None = None  # the printed table that its numbers are compared with
    origins: Mapping[int, Origin] = field(default_factory=dict)  # by cell, where it is another sweep's or number
    ages: Mapping[int, Age] = field(default_factory=dict)  # by cell, where it has numbers of older versions
    aged: str = ""  # the warning that says so
    address: str | None = None  # of the server that its cells link to; "" is the same server, None means no links

    def summary(self, column: Column, cell: int) -> CellSummary:
        """The summary of a cell with the candidate that the column shows."""
        return self.tested[cell] if column.selection == "test" else self.summaries[cell]

    def metric_cells(self) -> Iterator[tuple[Column, TableCell, int]]:
        """The cells of the table that show a metric of a sweep's cell: column, printed cell, and that cell's number."""
        for _, _, column, cell in timely(places(self.panels)):
            if column.kind == "metric" and cell.cell is not None:
                yield column, cell, cell.cell

    def origin(self, cell: int) -> Origin:
        """The sweep and cell number from which a cell of the table comes."""
        return self.origins.get(cell, Origin(self.sweep, cell))

    @property
    def complete(self) -> int:
        """The number of settled cells: selected from all candidates, or all trials failed or diverged."""
        return sum(one.status in SETTLED for one in self.summaries.values())

    @property
    def file_stem(self) -> str:
        """The file name of the table without suffix: ASCII letters, digits, dots and hyphens."""
        whose = "" if self.numbers == "own" else f"-{self.numbers}"
        whole = self.sweep_name if self.sweep == NO_SWEEP else f"{self.sweep_name}-{self.sweep}"
        name = f"{whole}-{self.name}{whose}"
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        return stem[:100]
