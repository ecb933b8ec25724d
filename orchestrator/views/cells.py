"""What stands behind a cell of a table: its candidates, their trials and where these ran, and what a paper printed."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from orchestrator.views.lifecycle import TrialState
from orchestrator.views.outcomes import Statistic
from orchestrator.views.remarks import Remark


class CellTrial(BaseModel):
    """A trial of a cell with the provenance of its training."""

    trial: int
    uid: str
    repeat: int
    labels: dict[str, str]
    """Of the repeat axes."""
    state: TrialState
    diverged: bool
    reused: bool
    score: float | None
    """The metric that the sweep selects by, of this trial alone."""
    training: str
    fingerprint: str
    """The hash of its completed recipe: trials that share it share the training."""
    dataset: str
    data_hash: str | None
    """Of the content of the data set."""
    git_commit: str | None
    """Of the code that trained it; `-dirty` where that was changed."""
    versions: dict[str, str]
    outdated: list[str] = Field(default_factory=list)
    """What has other numbers today than when it was planned, such as `metric 'map' (version 1, now 2)`."""
    device: str | None
    host: str | None
    seconds: float | None
    error: str | None
    reason: str | None
    """Why it was pruned."""
    url: str  # /v1/trials/<id>
    mlflow_url: str | None


class CellCandidate(BaseModel):
    """A candidate of a cell: the selected one, or one that lost."""

    index: int
    labels: dict[str, str]
    selected: bool
    status: str
    """complete, pending, diverged, failed, cancelled or pruned; only a complete one can be selected."""
    score: float | None
    """Mean over the repeats of what is selected by."""
    std: float | None
    n: int
    trials: list[CellTrial]


class CellNumber(BaseModel):
    """One number of a table that the cell fills."""

    table: str
    metric: str
    title: str
    text: str
    """As the table prints it, in the table's unit."""
    mean: float | None
    """As a fraction."""
    std: float | None
    n: int | None
    published: str | None = None
    """The table of a paper that it is compared with, such as SEC-T3; null where the paper has no such number."""
    printed: str | None = None
    """The paper's number, in its own characters."""
    difference: float | None = None
    tolerance: float | None = None
    verdict: str | None = None
    source: str | None = None
    """Where the paper has it from, if not from its own trainings."""


class CellView(BaseModel):
    """A cell of a sweep and everything behind its numbers."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str
    """complete, partial, failed, diverged or missing."""
    selection_key: str
    """What candidates are selected by: checkpoint/split/metric."""
    numbers: list[CellNumber]
    candidates: list[CellCandidate]
    """The selected one first, then the others in their order."""
    mixed: list[str] = Field(default_factory=list)
    """In which data, code and versions of parts the runs of the selected candidate differ."""
    mlflow_url: str | None = None
    remark: Remark = Field(default_factory=Remark)


class ComparedCell(BaseModel):
    """A cell as it stands beside others: its selected candidate, and what that measured."""

    sweep: int
    sweep_name: str
    index: int
    labels: dict[str, str]
    status: str
    """complete, partial, failed, diverged or missing."""
    selection_key: str
    candidates: int
    """How many compete in it."""
    selected: dict[str, str] | None
    """The labels of the selected candidate; of a cell with one candidate always that one's; none: none is chosen."""
    trials: dict[str, int]
    """How many of that candidate's trials are in each state; of all trials where none is chosen."""
    recipe: Mapping[str, Any]
    """Of that candidate's trainings, without what its repeats differ by; empty where none is chosen."""
    metrics: dict[str, Statistic]
    """By checkpoint/split/metric; of a candidate that is not complete, over the repeats that have finished so far."""
