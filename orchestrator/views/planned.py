"""What a plan consists of: cells, candidates and trials, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.spec.slot import Slot
from workers.catalog import FurtherMetrics, Need
from workers.contract import Recipe

Labels = Mapping[str, str]
"""The label of the chosen alternative by axis name, in the order of the axes."""


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
    further: FurtherMetrics | None = None  # of its recipe; none: the weights that others kept do not stand for it
