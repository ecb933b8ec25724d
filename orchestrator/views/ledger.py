"""The ledger of a paper: what own runs say of each of its printed numbers, and how these runs differ from its own."""

from typing import Literal

from pydantic import BaseModel

from orchestrator.spec.unit import Unit
from orchestrator.views.printing import printed

Standing = Literal["reproduced", "not reproduced", "underpowered", "not run"]
"""What own runs say of a printed number."""


class ProtocolDifference(BaseModel):
    """One thing in which own runs differ from what a paper did, or that it leaves open."""

    what: str
    paper: str
    here: str


class LedgerEvidence(BaseModel):
    """What the runs of one cell say of a printed number; shares are fractions."""

    sweep: int
    sweep_name: str
    cell: int
    standing: Standing
    why: str
    """In a sentence."""
    mean: float | None
    std: float | None
    n: int
    """Runs; 0: none."""
    difference: float | None
    """Own mean - printed number."""
    interval: float | None
    """Half the width of the 95 % interval of the own mean, with half a printed digit."""
    expected: float | None
    """How far one more run of the same protocol, which the printed number may be, lies from the own mean at most."""
    protocol: list[ProtocolDifference]


class LedgerEntry(BaseModel):
    """One printed number."""

    table: str
    labels: dict[str, str]
    tuned: dict[str, str]
    """What the authors chose, as far as they say."""
    metric: str
    printed: str
    unit: str
    source: str | None
    """Where the paper took it from; null for its own."""
    standing: Standing
    evidence: list[LedgerEvidence]
    """The first decides: the one whose protocol differs least, then of most runs, then of the newest sweep."""

    @property
    def own_and_difference(self) -> tuple[str, str]:
        """The own mean with half its interval, and its difference from the printed number, in the paper's unit."""
        one = self.evidence[0] if self.evidence else None
        if one is None or one.mean is None:
            return "", ""
        unit: Unit = "percent" if self.unit == "percent" else "number"
        decimals = max(2, len(self.printed.partition("±")[0].partition(".")[2]))
        own = printed(one.mean, unit, decimals)
        if one.interval is not None:
            own += f" ± {printed(one.interval, unit, decimals)}"
        apart = "" if one.difference is None else printed(one.difference, unit, decimals, signed=True)
        return own, apart


class LedgerCounts(BaseModel):
    """How many numbers stand how."""

    reproduced: int = 0
    not_reproduced: int = 0
    underpowered: int = 0
    not_run: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.reproduced + self.not_reproduced + self.underpowered + self.not_run

    @property
    def by_standing(self) -> dict[Standing, int]:
        """The same under the words."""
        return {
            "reproduced": self.reproduced, "not reproduced": self.not_reproduced,
            "underpowered": self.underpowered, "not run": self.not_run,
        }  # fmt: skip


class LedgerTable(BaseModel):
    """A printed table of a paper."""

    id: str
    title: str
    counts: LedgerCounts
    open: list[str]
    """What the paper contradicts itself in, or leaves open, for this table."""
    entries: list[LedgerEntry]


class LedgerSummary(BaseModel):
    """A paper in a list."""

    paper: str
    citation: str
    counts: LedgerCounts


class LedgerView(LedgerSummary):
    """The ledger of a paper."""

    within: float
    """The largest difference, in points of percent, that still counts as the same."""
    sweeps: list[int]
    """From which it is made."""
    said: str
    """By which rule numbers stand as they do."""
    tables: list[LedgerTable]
