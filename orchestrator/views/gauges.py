"""What operators measure of the whole service: values of one moment, read from the database and the disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.views.cluster import SlotView
from orchestrator.views.deliveries import DeliveryBacklog
from orchestrator.views.quotas import QuotaUse


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the tracker does not show yet."""

    runs: int
    seconds: float  # since when the oldest of them waits
    failing: int  # of which the last try failed
    error: str | None = None  # of one of those


@dataclass(frozen=True, slots=True)
class Gauges:
    """What one look at the database says."""

    sweeps: Mapping[str, int]  # by state
    trials: Mapping[str, int]  # by state
    attempts: Mapping[tuple[str, str], int]  # by state and cause; no cause: ""
    waiting: Mapping[str, int]  # by reason
    slots: Sequence[SlotView]
    offered: Mapping[str, float]  # by the nodes that are there, by resource
    held: Mapping[str, float]  # by slots that train, by resource
    backlog: Backlog
    deliveries: DeliveryBacklog
    report_lag: float
    heartbeat: float | None
    quotas: Sequence[QuotaUse] = ()  # of projects that have one; users are not named
