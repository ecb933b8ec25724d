"""What the words around a table are made from, and how names stand in a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.publish.aggregate import CandidateOutcome
from orchestrator.publish.labels import Names
from orchestrator.publish.published import PublishedTable
from orchestrator.publish.tables.significance import Comparison
from orchestrator.publish.tables.table_data import Panel, TableCell
from orchestrator.spec.table import TableSpec
from orchestrator.views.outcomes import CellSummary, SweepOutcomes
from workers.contract import Select


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the words are made from."""

    outcomes: SweepOutcomes
    layout: TableSpec
    names: Names
    select: Select
    summaries: Mapping[int, CellSummary]
    panels: Sequence[Panel]
    block: frozenset[str] | None
    candidates: Mapping[int, Sequence[CandidateOutcome]]  # by cell
    published: PublishedTable | None = None  # whose numbers the table holds in place of the sweep's
    aged: str = ""  # which numbers are of older versions

    def entries(self) -> Iterable[TableCell]:
        """Every place of the body."""
        return (cell for panel in self.panels for row in panel.rows for cell in row.cells)

    def comparisons(self) -> list[Comparison]:
        """Each comparison with a baseline once."""
        return list({id(one): one for cell in self.entries() if (one := cell.comparison)}.values())

    @property
    def baseline(self) -> str:
        """The cells that others are compared with, in words; "" where the layout asks for none."""
        found = (f"{lower(self.names.said(axis))} {self.names.label(axis, label)}"
                 for axis, label in (self.layout.against or {}).items())  # fmt: skip
        return ", ".join(found)

    def cell_name(self, cell: int) -> str:
        """A cell by its labels, in print."""
        labels = next(one.labels for one in self.outcomes.cells if one.index == cell)
        return " / ".join(self.names.label(axis, label) for axis, label in labels.items()) or "the only cell"


def lower(title: str) -> str:
    """A title within a sentence: `Loss` -> loss, but `SEC weight` and `η` stay."""
    return title.lower() if title[:1].isupper() and title[1:].islower() else title


def few(names: Sequence[str], most: int = 4) -> str:
    """Some names in a sentence, and how many more there are."""
    return listed(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
