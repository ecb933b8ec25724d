"""What is behind a table, as clients see it: verdicts, reproduction, table diffs, macros and resolutions."""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from orchestrator.spec.layouts import Unit
from orchestrator.views.pages import View
from orchestrator.views.runs import Labels
from orchestrator.views.tables import printed

CauseKind = Literal["selected candidate", "seeds", "recipe", "data", "code", "versions", "retrained"]
Change = Literal["changed", "appeared", "gone", "diverged", "failed", "pending"]
Significance = Literal["more than noise", "within noise", "cannot tell"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts of a training, such as its commit and device, that may explain a changed number."""

    recipe: Mapping[str, Any] = field(default_factory=dict)
    commit: str | None = None
    data_hash: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


class DiffCause(BaseModel):
    """A cause of a changed number in a table diff."""

    kind: CauseKind
    message: str  # what it was and what it is


class DiffNumber(BaseModel):
    """A number of a cell in a table diff; shares are fractions."""

    text: str  # as its table prints it
    mean: float | None
    std: float | None
    n: int
    sweep: int
    cell: int


class CellDiff(BaseModel):
    """A number of a table that has changed, with its causes."""

    labels: dict[str, str]
    metric: str
    title: str
    change: Change
    """`gone`: the cell does not exist any more; `diverged`, `failed`, `pending`: why it has no number now."""
    before: DiffNumber | None
    after: DiffNumber | None
    difference: float | None  # after - before
    shown: str  # the difference in the unit of the column
    causes: list[DiffCause]
    significance: Significance
    why: str  # by which test, or why there is none
    p: float | None  # two-sided, with Holm's correction over all tested numbers


class TableDiff(BaseModel):
    """The differences between two tables."""

    before: str
    after: str
    table: str
    unchanged: int  # numbers that are the same, run by run
    summary: str
    cells: list[CellDiff]


class MacroNumber(BaseModel):
    """A number of a table under the name of its LaTeX macro; texts are as the table prints them."""

    name: str  # of the macro, without its backslash
    labels: dict[str, str]
    metric: str  # as in the spec
    split: str  # on which it is measured
    selection: str  # the split that selects it, if the table shows two selections; else empty
    sweep: int
    cell: int
    value: str
    interval: str  # the 95 % Student-t interval of the mean; a word if there is none
    std: str
    seeds: int  # runs of the mean


class MacroAddress(BaseModel):
    """The table that macros are made of, and the prefix of their names."""

    sweep: int
    uid: str
    table: str
    prefix: str


class MacrosView(MacroAddress):
    """A table as LaTeX macros."""

    sweep_name: str
    caption: str
    numbers: list[MacroNumber]


MacroFormat = Literal["latex", "json"]


class PublishedSummary(BaseModel):
    """A table that a paper has published, in a list."""

    id: str
    paper: str
    title: str
    axes: list[str]  # the paths of a recipe that distinguish its rows and data sets
    metrics: list[str]
    count: int  # of its numbers


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """A printed number of a published table."""

    labels: Labels  # by axis, without axes that do not apply to its row
    tuned: Labels  # what the authors chose in that cell, as far as they report it
    metric: str  # as a spec names it; delta:<metric> for a printed difference
    printed: str  # the characters in the paper, in `unit`
    value: float | None  # shares as fractions; null if a word is printed
    std: float | None
    bold: bool | None  # null if it is not known
    unit: Unit
    std_unit: Unit
    source: str | None  # where the paper took it from; null for its own numbers

    @property
    def rounding(self) -> float:
        """The rounding error of the printed number: half a unit of its last digit, as a fraction."""
        decimals = len(self.printed.partition("±")[0].partition(".")[2])
        return float(Decimal("0.5").scaleb(-decimals - (2 if self.unit == "percent" else 0)))


class PublishedView(PublishedSummary):
    """A table that a paper has published, with its numbers."""

    citation: str
    note: str
    conflicts: dict[str, str]  # contradictions in and between papers that affect it
    numbers: list[PublishedNumber]


class CellOptimism(BaseModel):
    """How much selection inflates the score of a cell; shares are fractions, of the split that selects."""

    cell: int
    labels: dict[str, str]
    candidates: int  # that finished in every repeat, and so competed
    runs: int  # repeats of each candidate
    best: float | None  # the mean score of the selected candidate
    held_out: float | None
    """The mean, over the repeats, of a repeat's score of the candidate that the other repeats select."""
    optimism: float | None  # `best` - `held_out`; less than 0 only by chance
    reason: str  # why there is no such number; else empty
    expected: list[float]
    """The expected best mean score of 1, 2, ... candidates drawn with replacement (Dodge et al. 2019)."""


class OptimismView(BaseModel):
    """How much selection inflates the scores of a sweep's cells."""

    sweep: int
    sweep_name: str
    key: str  # what selects candidates: checkpoint/split/metric
    summary: str
    cells: list[CellOptimism]


class CellVerdictView(BaseModel):
    """A comparison of a cell with its baseline; differences are fractions, own - baseline."""

    cell: int
    labels: dict[str, str]
    baseline: int | None  # null if the sweep has no such cell
    metric: str  # the result key
    title: str  # of its column
    word: Literal["better", "worse", "equivalent", "no clear difference", "untested"]
    summary: str  # the verdict with seeds, difference, interval and p
    reason: str  # why it is untested
    pairs: int
    difference: float | None
    interval: list[float] | None  # of the difference, for all comparisons of the table and all looks at once
    p: float | None  # of the paired t-test alone, neither corrected nor sequential
    needs: float | None  # the threshold of p here, after correction and looks
    spent: float  # the share of the error level that looks so far may have spent
    looks: int  # recorded looks
    more_seeds: int | None
    """Seeds that would decide it with a probability of 80 %, if difference and spread are as estimated."""
    more_hours: float | None  # of these seeds on one slot, if durations are known
    to_decide: str = ""  # `about 3 more seeds, 2 min`, or why no seeds decide it; empty if it is decided or untested
    covers: Literal["seeds", "queries", "both"] = "seeds"
    """What interval and word hold for: other seeds, other test queries of these trainings, or both."""
    queries: int | None = None  # test queries that were paired, if it covers them
    classes: int | None = None  # the classes by which these are clustered
    error_seeds: float | None = None  # the standard error from the seeds alone, if it covers queries
    error_queries: float | None = None  # the same from the queries alone, for these trainings


class VerdictsView(BaseModel):
    """The comparisons of a table's cells with their baselines."""

    sweep: int
    table: str
    against: dict[str, str]  # the labels of the baselines; empty if nothing is compared
    level: float
    margin: float | None
    looks: Literal["planned", "any"]
    covers: Literal["seeds", "queries", "both"] = "seeds"
    summary: str  # the test, how many looks there were and what they spent
    comparisons: list[CellVerdictView]


ReproductionStatus = Literal[
    "reproduced", "not reproduced", "underpowered", "not run"
]  # what own runs show of a printed number


class ProtocolDifference(BaseModel):
    """One difference between the protocol of own runs and that of a paper, which may leave it open."""

    what: str
    paper: str
    here: str


class ReproductionEvidence(BaseModel):
    """What the runs of one cell show of a printed number; shares are fractions."""

    sweep: int
    sweep_name: str
    cell: int
    status: ReproductionStatus
    why: str  # in a sentence
    mean: float | None
    std: float | None
    n: int  # runs
    difference: float | None  # own mean - printed number
    interval: float | None  # half the width of the 95 % interval of the own mean, with half a printed digit
    expected: float | None
    """The largest distance from the own mean at which one more run of the same protocol is expected."""
    protocol: list[ProtocolDifference]


class ReproductionEntry(BaseModel):
    """A printed number of a paper and how own runs reproduce it."""

    table: str
    labels: dict[str, str]
    tuned: dict[str, str]  # what the authors chose, as far as they report it
    metric: str
    printed: str
    unit: str
    source: str | None  # where the paper took it from; null for its own numbers
    status: ReproductionStatus
    evidence: list[ReproductionEvidence]
    """The first decides: the smallest difference of protocol, then the most runs, then the newest sweep."""

    @property
    def own_and_difference(self) -> tuple[str, str]:
        """The own mean with half its interval, and its difference from the printed number, in the paper's unit."""
        first = self.evidence[0] if self.evidence else None
        if first is None or first.mean is None:
            return "", ""
        unit: Unit = "percent" if self.unit == "percent" else "number"
        decimals = max(2, len(self.printed.partition("±")[0].partition(".")[2]))
        own = printed(first.mean, unit, decimals)
        if first.interval is not None:
            own += f" ± {printed(first.interval, unit, decimals)}"
        difference = "" if first.difference is None else printed(first.difference, unit, decimals, signed=True)
        return own, difference


class ReproductionCounts(BaseModel):
    """How many printed numbers of a paper are reproduced, not reproduced, not run, and so on."""

    reproduced: int = 0
    not_reproduced: int = 0
    underpowered: int = 0
    not_run: int = 0

    @property
    def total(self) -> int:
        """The number of all printed numbers."""
        return sum(self.by_status.values())

    @property
    def by_status(self) -> dict[ReproductionStatus, int]:
        """The number of printed numbers by status, such as `reproduced`."""
        return {status: getattr(self, status.replace(" ", "_")) for status in get_args(ReproductionStatus)}


class ReproductionTable(BaseModel):
    """A printed table of a paper with the reproduction of its numbers."""

    id: str
    title: str
    counts: ReproductionCounts
    open: list[str]  # what the paper contradicts or leaves open for this table
    entries: list[ReproductionEntry]


class ReproductionSummary(BaseModel):
    """A paper in the list of reproductions."""

    paper: str
    citation: str
    counts: ReproductionCounts


class ReproductionView(ReproductionSummary):
    """The reproduction report of a paper."""

    within: float  # the largest difference, in percentage points, that counts as the same
    sweeps: list[int]  # from which it is made
    summary: str  # the rule that decides how numbers stand
    tables: list[ReproductionTable]


class ResolutionBudget(View):
    """The limits of a resolution of a sweep, which adds seeds; without limits it ends when all is decided."""

    hours: float | None = Field(default=None, gt=0, le=1_000_000)  # of training, on one slot
    seeds: int | None = Field(default=None, ge=1, le=48)  # more seeds of any one cell
    within: float | None = Field(default=None, gt=0, le=1_000_000)
    """A comparison also counts as decided at this half width of its interval, in the unit of the column."""

    @property
    def summary(self) -> str:
        """The budget in words: `40 hours, 12 seeds a cell, known within 0.5`."""
        words = [] if self.hours is None else [f"{self.hours:g} hour{'s' * (self.hours != 1)}"]
        words += [] if self.seeds is None else [f"{self.seeds} seed{'s' * (self.seeds != 1)} a cell"]
        words += [] if self.within is None else [f"known within {self.within:g}"]
        return ", ".join(words) or "no limit"


class CellSeeds(View):
    """The seeds that a cell gets in a round of a resolution."""

    cell: int
    labels: dict[str, str]
    seeds: list[int]


class LeftOut(View):
    """A comparison that gets no seeds in a round of a resolution, and why."""

    cell: int
    labels: dict[str, str]
    metric: str
    why: str


class ResolutionRound(View):
    """The cells and seeds that one round of a resolution trains."""

    number: int  # from 1
    cells: list[CellSeeds]
    trials: int
    hours: float | None  # expected on one slot; null if no training of such a cell was timed
    open: int  # comparisons that were not decided before it
    left_out: list[LeftOut] = Field(default_factory=list)
    request: int | None = None  # the extension of the sweep; null in a plan
    begun: datetime | None = None


class ResolutionView(View):
    """A resolution of a sweep, which adds seeds in rounds, or the plan of one."""

    sweep: int
    table: str
    budget: ResolutionBudget
    state: Literal["planned", "going", "ended"]
    """`planned`: nothing was requested; this is what its first round would be."""
    summary: str  # what it does, or why it ended
    actor: str | None = None
    request: int | None = None
    begun: datetime | None = None
    ended: datetime | None = None
    before: list[CellVerdictView] = Field(default_factory=list)
    """The verdicts before its first round; empty while the sweep still trains its own trials."""
    rounds: list[ResolutionRound] = Field(default_factory=list)
    after: list[CellVerdictView] = Field(default_factory=list)  # the verdicts at its end
    trials: int = 0  # that its rounds added
    hours_spent: float = 0.0  # by these trials so far
    saved: int = 0  # how many trials fewer than if every compared cell had got as many seeds as the one with the most

    def title(self, metric: str) -> str:
        """The title of the column that shows a result key."""
        return next((verdict.title for verdict in self.before if verdict.metric == metric), metric)

    def changed(self) -> list[tuple[CellVerdictView, CellVerdictView | None]]:
        """Each verdict before the first round with that at the end, which is `None` while the resolution goes on."""
        after: defaultdict[tuple[int, str], deque[CellVerdictView]] = defaultdict(deque)
        for last in self.after:  # with two selections there are two of a cell and metric, in the order of the columns
            after[last.cell, last.metric].append(last)
        found = [(first, after[first.cell, first.metric]) for first in self.before]
        return [(first, last.popleft() if last else None) for first, last in found]
