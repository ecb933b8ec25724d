"""What stands behind a table, as clients see it: verdicts, reproduction, differences, macros and resolutions."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from orchestrator.spec.axes import Unit
from orchestrator.views.pages import View
from orchestrator.views.tables import printed

CauseKind = Literal["selected candidate", "seeds", "recipe", "data", "code", "versions", "retrained"]
Change = Literal["changed", "appeared", "gone", "diverged", "failed", "pending"]
Loudness = Literal["more than noise", "within noise", "cannot tell"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What of a training may explain another number."""

    recipe: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    data_hash: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


class DriftCause(BaseModel):
    """One thing that is not as it was."""

    kind: CauseKind
    said: str
    """What it was and what it is."""


class DriftNumber(BaseModel):
    """A number of a cell; shares are fractions."""

    text: str
    """As its table prints it."""
    mean: float | None
    std: float | None
    n: int
    sweep: int
    cell: int


class CellDrift(BaseModel):
    """One number that is not as it was."""

    labels: dict[str, str]
    metric: str
    title: str
    change: Change
    """`gone`: there is no such cell any more; the last three: there is, and this is why it has no number now."""
    before: DriftNumber | None
    after: DriftNumber | None
    difference: float | None
    """After - before."""
    shown: str
    """The same in the unit of the column."""
    causes: list[DriftCause]
    loudness: Loudness
    why: str
    """By which test, or why there is none."""
    p: float | None
    """Two-sided, corrected by Holm's method over all numbers that were tested."""


class DriftView(BaseModel):
    """The difference of two tables."""

    before: str
    after: str
    table: str
    unchanged: int
    """Numbers that are as they were, run by run."""
    said: str
    cells: list[CellDrift]


class MacroNumber(BaseModel):
    """One number of a table under the name of its macro; texts are as the table prints them."""

    name: str
    """Of the macro, without its backslash."""
    labels: dict[str, str]
    metric: str
    """As the spec names it."""
    split: str
    """On which it is measured."""
    selection: str
    """By which split it is selected, where the table shows two; else empty."""
    sweep: int
    cell: int
    value: str
    interval: str
    """95 % Student-t interval of the mean; a word where there is none."""
    std: str
    seeds: int
    """Runs that it is the mean of."""


class MacroAddress(BaseModel):
    """Of which table macros are, and with what they begin."""

    sweep: int
    uid: str
    table: str
    prefix: str


class MacrosView(MacroAddress):
    """A table as macros."""

    sweep_name: str
    caption: str
    numbers: list[MacroNumber]


MacroFormat = Literal["latex", "json"]


class PublishedSummary(BaseModel):
    """A published table in a list."""

    id: str
    paper: str
    title: str
    axes: list[str]
    """The paths of a recipe that tell its rows and data sets apart."""
    metrics: list[str]
    count: int
    """How many numbers it has."""


class PublishedNumber(BaseModel):
    """One printed number."""

    labels: dict[str, str]
    """By axis; an axis that does not apply to its row is left out."""
    tuned: dict[str, str]
    """What the authors chose in that cell, as far as they say."""
    metric: str
    printed: str
    """The characters in the paper, in `unit`."""
    value: float | None
    """Shares as fractions; null where a word is printed."""
    std: float | None
    bold: bool | None
    """Null where it is not known."""
    unit: str
    std_unit: str
    source: str | None
    """Where the paper took it from; null for its own."""


class PublishedView(PublishedSummary):
    """One published table whole."""

    citation: str
    note: str
    conflicts: dict[str, str]
    """Contradictions in and between the papers that touch it."""
    numbers: list[PublishedNumber]


class CellOptimism(BaseModel):
    """The selection of one cell; shares are fractions, of the split that is selected by."""

    cell: int
    labels: dict[str, str]
    candidates: int
    """That finished in every repeat, and so competed."""
    runs: int
    """Repeats of each."""
    best: float | None
    """The mean score of the selected candidate."""
    held_out: float | None
    """The mean, over the repeats, of a repeat's score of the candidate that the others select."""
    optimism: float | None
    """By how much `best` is better than that; less than 0 by chance alone."""
    reason: str
    """Why there is no such number; else empty."""
    expected: list[float]
    """The expected best mean score of 1, 2, ... candidates drawn with replacement (Dodge et al. 2019)."""


class OptimismView(BaseModel):
    """The selections of a sweep."""

    sweep: int
    sweep_name: str
    key: str
    """What candidates are selected by: checkpoint/split/metric."""
    said: str
    cells: list[CellOptimism]


class CellVerdictView(BaseModel):
    """One comparison of a table; differences are fractions, own - baseline."""

    cell: int
    labels: dict[str, str]
    baseline: int | None
    """None: the sweep has no such cell."""
    metric: str
    """The result key."""
    title: str
    """What stands above its column."""
    word: Literal["better", "worse", "equivalent", "unresolved", "untested"]
    said: str
    """The verdict in a sentence."""
    reason: str
    """Why it is untested."""
    pairs: int
    difference: float | None
    interval: list[float] | None
    """Of the difference: it holds for all comparisons of the table and all looks at once."""
    p: float | None
    """Of the paired t-test by itself, neither corrected nor sequential."""
    needs: float | None
    """Below which p has to be here, after correction and looks."""
    spent: float
    """The share of the error level that looks so far may have spent."""
    looks: int
    """Looks that the record knows of."""
    more_seeds: int | None
    """That would decide it four times of five, if difference and spread are what they seem."""
    more_hours: float | None
    """That these take on one slot, where durations are known."""
    covers: Literal["seeds", "queries", "both"] = "seeds"
    """What interval and word cover: other seeds, other test queries of these trainings, or both."""
    queries: int | None = None
    """Test queries that were paired, where it covers them."""
    classes: int | None = None
    """Classes of these, by which they are clustered."""
    error_seeds: float | None = None
    """The standard error of the difference from the seeds alone, where it covers queries."""
    error_queries: float | None = None
    """The same from the queries alone, for these trainings."""


class VerdictsView(BaseModel):
    """The verdicts of a table, all taken together."""

    sweep: int
    table: str
    against: dict[str, str]
    """The labels of the baselines; empty: nothing is compared."""
    level: float
    margin: float | None
    looks: Literal["planned", "any"]
    covers: Literal["seeds", "queries", "both"] = "seeds"
    said: str
    """By what they are given, how many looks there were and what they spent."""
    comparisons: list[CellVerdictView]


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


class ResolutionBudget(View):
    """What a resolution may take; without any limit it ends where all is decided, or nothing more can be."""

    hours: float | None = Field(default=None, gt=0, le=1_000_000)
    """Of training, on one slot."""
    seeds: int | None = Field(default=None, ge=1, le=48)
    """Further ones of any one cell."""
    within: float | None = Field(default=None, gt=0, le=1_000_000)
    """What is known to so much is decided too: half the width of its interval, in the unit of the column."""

    @property
    def said(self) -> str:
        """In words: `40 hours, 12 seeds a cell, known within 0.5`."""
        words = [] if self.hours is None else [f"{self.hours:g} hour{'s' * (self.hours != 1)}"]
        words += [] if self.seeds is None else [f"{self.seeds} seed{'s' * (self.seeds != 1)} a cell"]
        words += [] if self.within is None else [f"known within {self.within:g}"]
        return ", ".join(words) or "no limit"


class CellSeeds(View):
    """The seeds that a cell is given in a round."""

    cell: int
    labels: dict[str, str]
    seeds: list[int]


class LeftOut(View):
    """A comparison that is given no seeds."""

    cell: int
    labels: dict[str, str]
    metric: str
    why: str


class ResolutionRound(View):
    """What one round trains."""

    number: int
    """From 1."""
    cells: list[CellSeeds]
    trials: int
    hours: float | None
    """That it was expected to take on one slot; none where no training of such a cell was timed."""
    open: int
    """Comparisons that were not decided before it."""
    left_out: list[LeftOut] = Field(default_factory=list)
    request: int | None = None
    """The extension by which the sweep grew; none in a plan."""
    begun: datetime | None = None


class ResolutionView(View):
    """A resolution, or the plan of one."""

    sweep: int
    table: str
    budget: ResolutionBudget
    state: Literal["planned", "going", "ended"]
    """`planned`: nothing was asked for; this is what its first round would be."""
    said: str
    """What it does, or why it ended."""
    actor: str | None = None
    request: int | None = None
    begun: datetime | None = None
    ended: datetime | None = None
    before: list[CellVerdictView] = Field(default_factory=list)
    """The verdicts before its first round; empty while the sweep still trains what it had."""
    rounds: list[ResolutionRound] = Field(default_factory=list)
    after: list[CellVerdictView] = Field(default_factory=list)
    """The verdicts at its end."""
    trials: int = 0
    """That its rounds added."""
    hours_spent: float = 0.0
    """That these took so far."""
    saved: int = 0
    """Trials less than if every compared cell had been given as many seeds as the one that got most."""

    def title(self, metric: str) -> str:
        """What stands above the column of a result key."""
        return next((one.title for one in self.before if one.metric == metric), metric)

    def changed(self) -> list[tuple[CellVerdictView, CellVerdictView | None]]:
        """Each verdict before its first round with that at its end, of which there is none while it goes on.

        A table by two selections has two of a cell and metric, in the order of its columns.
        """
        after: defaultdict[tuple[int, str], deque[CellVerdictView]] = defaultdict(deque)
        for one in self.after:
            after[one.cell, one.metric].append(one)
        last = [(one, after[one.cell, one.metric]) for one in self.before]
        return [(one, found.popleft() if found else None) for one, found in last]
