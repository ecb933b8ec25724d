"""A table before it has a format: panels of headings, rows and cells, and the words that stand with them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from orchestrator.publish.papers import Number, PublishedTable
from orchestrator.publish.tables.reproduction import Reproduction
from orchestrator.publish.verdicts.judge import CellVerdict, QuerySpread
from orchestrator.publish.verdicts.significance import Comparison, ImportedComparison
from orchestrator.spec.axes import Unit
from orchestrator.spec.layouts import Center, Covers, Spread
from orchestrator.views.runs import NO_SWEEP, CellSummary, Labels, Statistic

Mark = Literal["pending", "partial", "failed", "diverged"]
"""Why a cell has no value, or (`partial`) why its value may still change."""

Age = Literal["older", "mixed"]
"""`older`: all that finished in a cell has numbers of older versions; `mixed`: some of it."""

Numbers = Literal["own", "published", "difference", "both", "verdict"]
"""Which numbers a table shows: the sweep's, the paper's, own - published, both side by side, or own with a verdict."""

Selected = Literal["validation", "test"]
"""On which split a cell's candidate and a training's checkpoint are chosen."""

PENDING: Final = "…"
"""What stands for a number or a label that is still to come."""

MIXED_SIGN: Final = "◊"
"""What follows a number whose runs were trained with different data, code or versions of parts."""

SETTLED: Final = frozenset({"complete", "failed", "diverged"})
"""The statuses of a cell that will not change unless it is retried."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading over `span` columns, or beside `span` rows."""

    text: str
    span: int = 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column of numbers, or of the tuned values of one axis."""

    kind: Literal["metric", "tuned", "published", "difference", "verdict", "flattery"]
    name: str  # the metric as the spec names it (`delta:` before it for a difference), or the tune axis
    title: str
    labels: Labels  # of the column axes, as the spec writes them
    key: str = ""  # the result key of a metric
    unit: Unit = "number"
    decimals: int = 2
    better: str = "none"  # higher, lower or none
    signed: bool = False
    delta: Labels | None = None  # the labels that set apart the cell from which the difference is shown
    selection: Selected | None = None  # where the table shows two; none: the spec's
    over: str = ""  # what stands above it and its neighbours
    over_queries: bool = False  # whether it is of a metric that is a mean over queries

    @property
    def split(self) -> str:
        """On which a metric is measured: `test` of `best/test/recall@1`; empty for what is no metric."""
        return self.key.partition("/")[2].partition("/")[0]

    @property
    def scale(self) -> int:
        """By what a fraction is multiplied where it stands in its unit."""
        return 100 if self.unit == "percent" else 1

    @property
    def wordy(self) -> bool:
        """Whether it holds words, or labels, rather than numbers."""
        return self.kind in {"tuned", "verdict"}


@dataclass(frozen=True, slots=True)
class Quotation:
    """What a paper printed at a place of the body, and how the own number compares."""

    number: Number
    reproduction: Reproduction


@dataclass(frozen=True, slots=True)
class ImportedValue:
    """A number that was imported, and how it compares with the own one that it is to be tested against."""

    label: str  # what stands beside its row
    source: str
    statistic: Statistic  # unrounded, as a fraction; n is 0 where it is not known
    test: ImportedComparison | None = None


@dataclass(frozen=True, slots=True)
class TableCell:
    """One place of the body. Numbers are printed with ASCII digits and minus; a format may set them finer."""

    text: str
    std: str | None = None  # the spread that the table shows
    bold: bool = False
    mark: Mark | None = None
    note: str = ""  # one line on where the number comes from
    statistic: Statistic | None = None  # unrounded, as a fraction
    cell: int | None = None  # the sweep's cell; none where the sweep has none
    span: int = 1  # over how many columns the text stands; 0: under that of a cell to the left
    quotation: Quotation | None = None
    imported: ImportedValue | None = None
    center: float | None = None  # what is printed, unrounded, where it is not the mean
    count: int | None = None  # the number of runs, where it is printed
    comparison: Comparison | None = None  # with the baseline, run by run
    mixed: str = ""  # in what the runs behind it differ: data, code, versions of parts
    doubt: str = ""  # why its being bold may rest on noise, where that was asked for
    shade: str = ""  # the class of its colour on a page
    verdict: CellVerdict | None = None  # whether it is better than its baseline, where that was asked for
    said: str = ""  # that verdict in a sentence
    judged: str = ""  # its mark, where marks stand for words
    queries: QuerySpread | None = None  # how its queries vary, where its spread covers them
    unspread: str = ""  # why it has no spread, where that should cover queries
    lone: bool = False  # the place of a difference between two sweeps, of which only one has this cell

    @property
    def numeric(self) -> bool:
        """Whether a number is printed: an own one, what a paper prints in a row that is quoted, or an imported one."""
        return self.statistic is not None or self.cited or self.imported is not None

    @property
    def cited(self) -> bool:
        """Whether it is a paper's number that stands where own ones do."""
        return self.cell is None and self.quotation is not None and self.quotation.number.value is not None

    @property
    def after(self) -> str:
        """What is printed small behind a number: whether its runs differ, how it compares, and of how many it is."""
        count = "" if self.count is None else f"({self.count})"
        return (
            (MIXED_SIGN if self.mixed else "") + (self.comparison.sign if self.comparison else "") + self.judged + count
        )


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of a panel."""

    headings: tuple[Heading | None, ...]  # one a stub column; none where a heading above spans this row
    texts: tuple[str, ...]  # the same headings, repeated
    labels: Labels  # of the row axes, as the spec writes them
    rule: int | None  # a rule stands above, from this stub column rightwards; none: no rule
    cells: tuple[TableCell, ...]
    quoted: bool = False  # what a paper prints, and nothing of the sweep
    imported: int | None = None  # which of the rows that the layout imports, and nothing of the sweep


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of cells under one set of column headings."""

    groups: tuple[tuple[Heading, ...], ...]  # the levels above the column titles; spans cover the columns
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]

    @property
    def titled(self) -> bool:
        """Whether its columns have titles of their own; without them the last level of headings says it all."""
        return not self.groups or any(column.title for column in self.columns)


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark that occurs in the table, and its meaning."""

    symbol: str
    meaning: str


class Origin(NamedTuple):
    """A cell of a sweep."""

    sweep: int
    cell: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table with everything that a format needs."""

    name: str
    sweep: int  # NO_SWEEP: only a spec, whose layout it has
    sweep_name: str
    state: str
    stub: tuple[str, ...]  # the titles of the row headings
    panels: tuple[Panel, ...]
    caption: str
    notes: tuple[str, ...]
    legend: tuple[LegendEntry, ...]
    summaries: Mapping[int, CellSummary]  # by cell
    std: bool
    numbers: Numbers = "own"
    center: Center = "mean"
    spread: Spread = "std"
    covers: Covers = "seeds"
    published: PublishedTable | None = None  # the printed table that its numbers are compared with
    tested: Mapping[int, CellSummary] = field(default_factory=dict)  # the same chosen on test, where it shows that
    origins: Mapping[int, Origin] = field(default_factory=dict)  # by cell, where it is another sweep's or number
    ages: Mapping[int, Age] = field(default_factory=dict)  # by cell, where it has numbers of older versions
    aged: str = ""  # what the caption says of that
    address: str | None = None  # of the server whose pages its cells lead to; "": the same; none: no links

    def summary(self, column: Column, cell: int) -> CellSummary:
        """A cell with the candidate that a column shows."""
        return self.tested[cell] if column.selection == "test" else self.summaries[cell]

    def origin(self, cell: int) -> Origin:
        """The sweep and the cell of it that a cell of this table is."""
        return self.origins.get(cell, Origin(self.sweep, cell))

    @property
    def complete(self) -> int:
        """How many cells are settled: selected from all candidates, or failed or diverged altogether."""
        return sum(one.status in SETTLED for one in self.summaries.values())

    @property
    def file_stem(self) -> str:
        """The name of a file that holds this table, without its suffix: ASCII letters, digits, dot and hyphens."""
        whose = "" if self.numbers == "own" else f"-{self.numbers}"
        whole = self.sweep_name if self.sweep == NO_SWEEP else f"{self.sweep_name}-{self.sweep}"
        name = f"{whole}-{self.name}{whose}"
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        return stem[:100]
