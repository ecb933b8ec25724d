"""Growing a sweep: the trials that it has, by their labels, and what a wider spec adds to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.views.planned import Candidate, Cell, Labels, PlannedTrial


@dataclass(frozen=True, slots=True)
class TrialKey:
    """A trial that exists, by numbers and by labels."""

    cell: int
    cell_labels: Labels
    candidate: int
    candidate_labels: Labels
    repeat: int
    repeat_labels: Labels
    fingerprint: str
    stamp: str = ""  # of the versions that its training was planned with
    trial: int = 0
    base: str = ""  # the fingerprint of its recipe without further metrics
    metrics: tuple[str, ...] = ()  # the further metrics of its recipe, and of the one that it is evaluated for


@dataclass(frozen=True, slots=True)
class MeasuredTrial:
    """A trial that exists, and the training whose further metrics it is to have."""

    trial: int
    plan: PlannedTrial


@dataclass(frozen=True, slots=True)
class SweepLook:
    """When a sweep was extended, so that its numbers may have been looked at before."""

    at: datetime
    position: int  # of the first trial that was added
    finished: int  # trials that had finished by then


@dataclass(frozen=True, slots=True)
class Extension:
    """A wider spec, and what it has beyond the places that exist."""

    text: str
    spec: Mapping[str, Any]
    total: int
    cells: Sequence[Cell]
    candidates: Sequence[Candidate]
    trials: Sequence[PlannedTrial]
    measured: Sequence[MeasuredTrial] = ()
