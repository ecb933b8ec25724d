"""A table before it has a format: panels of headings, rows and cells, and the words that stand with them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from orchestrator.publish.layout import Unit
from orchestrator.trial import CellSummary, Labels, Statistic

Mark = Literal["pending", "partial", "failed", "diverged"]
"""Why a cell has no value, or (`partial`) why its value may still change."""

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

    kind: Literal["metric", "tuned"]
    name: str  # the metric as the spec names it, or the tune axis
    title: str
    labels: Labels  # of the column axes, as the spec writes them
    key: str = ""  # the result key of a metric
    unit: Unit = "number"
    decimals: int = 2
    better: str = "none"  # higher, lower or none


@dataclass(frozen=True, slots=True)
class TableCell:
    """One place of the body. Numbers are printed with ASCII digits and minus; a format may set them finer."""

    text: str
    std: str | None = None
    bold: bool = False
    mark: Mark | None = None
    note: str = ""  # one line on where the number comes from
    statistic: Statistic | None = None  # unrounded, as a fraction
    cell: int | None = None  # the sweep's cell; none where the sweep has none


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a panel."""

    headings: tuple[Heading | None, ...]  # one a stub column; none where a heading above spans this row
    texts: tuple[str, ...]  # the same headings, repeated
    labels: Labels  # of the row axes, as the spec writes them
    rule: int | None  # a rule stands above, from this stub column rightwards; none: no rule
    cells: tuple[TableCell, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of cells under one set of column headings."""

    groups: tuple[tuple[Heading, ...], ...]  # the levels above the column titles; spans cover the columns
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A mark that occurs in the table, and its meaning."""

    symbol: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table with everything that a format needs."""

    name: str
    sweep: int
    sweep_name: str
    state: str
    stub: tuple[str, ...]  # the titles of the row headings
    panels: tuple[Panel, ...]
    caption: str
    notes: tuple[str, ...]
    legend: tuple[LegendEntry, ...]
    summaries: Mapping[int, CellSummary]  # by cell
    std: bool

    @property
    def complete(self) -> int:
        """How many cells are settled: selected from all candidates, or failed or diverged altogether."""
        return sum(one.status in SETTLED for one in self.summaries.values())

    @property
    def file_stem(self) -> str:
        """The name of a file that holds this table, without its suffix: ASCII letters, digits, dot and hyphens."""
        stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.sweep_name}-{self.sweep}-{self.name}").strip("-").lower()
        return stem[:100]
