"""The machines of the cluster: what each offers, and what its data root was found to have."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from workers.catalog import Finding, Need


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster and what it offers, whether that is free or not."""

    uid: str
    host: str
    resources: Mapping[str, float]  # CPU, GPU, memory (bytes), and custom ones by name


@dataclass(frozen=True, slots=True)
class PlannedContent:
    """The content of the data that a sweep is planned with."""

    uid: str  # of the sweep
    known: Mapping[str, Mapping[str, str]]  # by the key of the need


@dataclass(frozen=True, slots=True)
class Inspected:
    """What the data root of a node was found to have."""

    node: str  # its uid
    host: str
    need: Need
    finding: Finding
    looked: datetime
