"""What came out of trials: what tables are computed from, and what a cell shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from orchestrator.views.lifecycle import TrialState
from orchestrator.views.planned import Candidate, Cell, Labels
from orchestrator.views.query_sums import QuerySource, nowhere


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What is known of one trial when a table is computed."""

    trial: int  # the trial's id
    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    state: TrialState
    diverged: bool = False
    reused: bool = False
    values: Mapping[str, float] = field(default_factory=dict)
    """The result's metrics, keyed checkpoint/split/metric; empty unless finished."""
    stamp: str = ""  # of the versions that a finished one was planned with
    origin: str = ""  # of the data and code that a finished one was trained with (views.provenance.origin_of)
    coming: tuple[str, ...] = ()  # metrics that are being evaluated of its kept weights
    position: int = 0  # in the order in which the sweep came to hold it
    seconds: float | None = None  # that a finished one was trained


NO_SWEEP: Final = 0
"""The number of what only a spec says: no sweep has it."""


@dataclass(frozen=True, slots=True)
class SweepOutcomes:
    """Everything that a table is computed from."""

    sweep: int
    name: str
    state: str
    spec: Mapping[str, Any]  # the normalized spec, as `spec.Spec` dumps it
    cells: tuple[Cell, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[TrialOutcome, ...]
    queries: QuerySource = field(default=nowhere, compare=False, repr=False)
    """What the test queries of its trials scored, for tables that cover them."""

    def trials_of(self, cell: int) -> Iterable[TrialOutcome]:
        """The trials of one cell, in order."""
        return (trial for trial in self.trials if trial.cell == cell)


@dataclass(frozen=True, slots=True)
class Statistic:
    """A mean over repeats; `std` is the sample's, none for n = 1."""

    mean: float
    std: float | None
    n: int


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell's selected candidate with its statistics, as MLflow's cell run and the pages show it."""

    cell: int
    status: Literal["complete", "partial", "failed", "diverged", "missing"]
    candidate: int | None  # index within the cell
    labels: Labels  # of the selected candidate
    selection_key: str
    score: Statistic | None
    metrics: Mapping[str, Statistic]  # keyed checkpoint/split/metric
    candidates: int  # how many competed: the cell's selection budget
    coming: tuple[str, ...] = ()  # metrics that are still being evaluated of some repeat
    undefined: tuple[str, ...] = ()  # keys that were computed and have no value, such as a recall of no query
