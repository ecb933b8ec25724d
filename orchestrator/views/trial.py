"""The words between the four verbs: cell, candidate, trial, order and outcome, as plain data."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from orchestrator.views.lifecycle import TrialState
from workers.catalog import Finding, Need
from workers.contract import Recipe

Labels = Mapping[str, str]
"""The label of the chosen alternative by axis name, in the order of the axes."""

RESOURCE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,99}")
_RESERVED: Final = {
    "cpu": "cpus",
    "cpus": "cpus",
    "gpu": "gpus",
    "gpus": "gpus",
    "memory": "memory_gb",
    "object_store_memory": "memory_gb",
}


class Slot(BaseModel):
    """The resources of one trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpus: float = Field(default=1, gt=0, le=1024)
    gpus: float | Literal["auto"] = "auto"
    """A share of a GPU, or `auto`: one where the cluster has GPUs, none otherwise."""
    memory_gb: float | None = Field(default=None, gt=0)
    resources: dict[str, float] = Field(default_factory=dict, max_length=20, exclude_if=lambda value: not value)
    """Custom resources of the cluster by name, such as `a100: 1`."""
    stall_minutes: float = Field(default=60, gt=0, le=100_000)
    """An attempt that reports nothing for so long is stopped and counts as a failure."""
    retries: int = Field(default=1, ge=0, le=100)
    """How often a training that stalled is tried again, from its last checkpoint."""

    @field_validator("resources")
    @classmethod
    def _custom(cls, resources: dict[str, float]) -> dict[str, float]:
        for name, amount in resources.items():
            if own := _RESERVED.get(name.lower()):
                raise ValueError(f"'{name}' is no custom resource; say it as `{own}`")
            if not RESOURCE_NAME.fullmatch(name) or name.startswith("node:"):
                raise ValueError(
                    f"'{name[:100]}' is no name of a custom resource: letters, digits and _.:- after a letter"
                )
            if not 0.0001 <= amount <= 1_000_000:
                raise ValueError(f"expected 0.0001 to 1,000,000 of '{name}', found {amount:g}")
        return resources


MOST_TRAININGS: Final = 256
"""Trainings that run at once: each is followed by a relay with a process of its own."""


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster and what it offers, whether that is free or not."""

    uid: str
    host: str
    resources: Mapping[str, float]  # CPU, GPU, memory (bytes), and custom ones by name


@dataclass(frozen=True, slots=True)
class Inspected:
    """What the data root of a node was found to have."""

    node: str  # its uid
    host: str
    need: Need
    finding: Finding
    looked: datetime


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the compare axes."""

    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Candidate:
    """One point of the tune axes within a cell; `index` counts within the cell, from 0."""

    cell: int
    index: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a search may vary in a cell: the labels of alternatives, or a range of numbers where there are none."""

    axis: str
    name: str  # unique among the dimensions of a cell; an axis has several where `when` tells them apart
    when: Mapping[str, tuple[str, ...]]  # labels of earlier axes of the search under which it applies
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One place (cell, candidate, repeat) and the completed recipe of the training it points to."""

    cell: int
    candidate: int
    repeat: int
    repeat_labels: Labels
    recipe: Recipe
    fingerprint: str
    slot: Slot | None = None  # none: that of its sweep
    document: Mapping[str, Any] | None = None  # the recipe as JSON, where somebody has made it already
    need: Need | None = None  # what its training reads of a data root


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt at one training, handed to an engine."""

    attempt: str  # UUID
    training: str  # UUID
    number: int  # of the attempt, from 1
    recipe: Mapping[str, Any]  # JSON of the completed recipe
    slot: Slot
    resume: str | None = None  # checkpoint to continue from, relative to the storage: <training>/<number>/last.pt
    holder: str | None = None  # the slot actor that already runs it, when a conductor adopts it
    seen: int = 0  # progress messages already recorded; an adopted slot replays what follows
    need: str | None = None  # the key of what it reads of a data root
    lacking: tuple[str, ...] = ()  # the nodes that were seen not to have it


FailureKind = Literal["recipe", "infrastructure", "stalled", "missing", "damaged"]
"""`missing`, `damaged`: of the data set or the weights; the machine's data root is to be looked at."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended without a result."""

    kind: FailureKind
    message: str  # one line: the exception's type and text
    trace: str = ""  # the traceback, or the last lines of the log
    begun: bool = True  # False: its slot was lost before it was there, so that the training had no part in it


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


NO_SWEEP: Final = 0
"""The number of what only a spec says: no sweep has it."""


@dataclass(frozen=True, slots=True)
class SweepOutcomes:
    """Everything that a table is computed from."""

    sweep: int
    name: str
    state: str
    spec: Mapping[str, Any]  # the normalized spec, as `plan.spec.Spec` dumps it
    cells: tuple[Cell, ...]
    candidates: tuple[Candidate, ...]
    trials: tuple[TrialOutcome, ...]

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
