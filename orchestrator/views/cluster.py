"""What the cluster is and does, as clients see it: nodes, slots, who uses what, and why trials wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import BaseModel

from orchestrator.views.deliveries import DeliveryBacklog
from orchestrator.views.lifecycle import SweepState
from orchestrator.views.pages import View
from orchestrator.views.quotas import QuotaUse


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the tracker does not show yet."""

    runs: int
    seconds: float  # since when the oldest of them waits
    failing: int  # of which the last try failed
    error: str | None = None  # of one of those


class Check(View):
    """Whether one thing that the service needs is there."""

    name: str
    ok: bool
    detail: str


class Disk(View):
    """A folder that fills up, and the disk that it is on."""

    name: str
    free_bytes: int
    size_bytes: int


class Readiness(View):
    """Whether the service can do its work."""

    ok: bool
    checks: list[Check]


class MirrorView(BaseModel):
    """What MLflow is still to be told of a sweep, or of all."""

    waiting: int
    """Runs that it does not show as they are."""
    error: str | None = None
    """Why one of them could not be told when it was tried last."""


class DataFinding(BaseModel):
    """What a node's data root was found to have of what a training needs."""

    host: str
    node: str
    """What tells it from others of that name: Ray's identifier."""
    data: str
    """A data set, with those hyper-parameters that decide on its files, and weights."""
    state: Literal["ok", "missing", "wrong", "unknown"]
    said: str
    """Where was looked, what was found and how to get it; where it is there, what was passed over and why."""
    looked: datetime


class WaitReason(StrEnum):
    """Why a trial waits."""

    SLOT = "slot"
    EVALUATION = "evaluation"
    PAUSED = "paused"
    QUOTA = "quota"
    HOURS = "hours"
    RESOURCES = "resources"
    DATA = "data"
    EXPANSION = "expansion"


REASONS: Final[Mapping[WaitReason, str]] = {
    WaitReason.SLOT: "for a free slot",
    WaitReason.EVALUATION: "for a slot that evaluates its kept weights",
    WaitReason.PAUSED: "until its sweep is resumed",
    WaitReason.QUOTA: "until another training of its owner or project ends",
    WaitReason.HOURS: "until hours of its owner's or project's quota are free again",
    WaitReason.RESOURCES: "for a node that can hold its slot",
    WaitReason.DATA: "for a machine that has its data",
    WaitReason.EXPANSION: "until the conductor takes its sweep up",
}
"""What is said of each."""


class GpuUsage(View):
    """One GPU that a slot's process sees, as NVML tells."""

    index: int
    name: str
    memory_bytes: int
    memory_used_bytes: int
    """By everybody who uses it."""
    busy: float | None = None
    """Share of the last moments in which it computed; none: NVML does not tell."""


class ProcessUsage(View):
    """What a slot's process takes, and what its machine has."""

    memory_bytes: int
    cpus: float
    """CPUs that it kept busy since it was asked last."""
    machine_memory_bytes: int
    machine_memory_free_bytes: int
    machine_cpus: int
    machine_load: float | None = None
    """Processes that wanted a CPU, over the last minute."""
    gpus: list[GpuUsage] | None = None
    """None: there is no GPU, or nothing that tells of it."""


@dataclass(frozen=True, slots=True)
class SlotReport:
    """A slot that is there, as its engine knows it."""

    name: str
    node: str  # the first characters of its node's uid
    host: str
    resources: Mapping[str, float]
    attempt: str | None = None
    usage: ProcessUsage | None = None
    lag: float | None = None  # seconds that the oldest message which is not recorded has waited


class Occupant(View):
    """The trial that a slot trains."""

    sweep: int
    sweep_name: str
    trial: int
    labels: dict[str, str]
    step: int
    total_steps: int
    started: datetime


class SlotView(View):
    """A slot and what it does."""

    name: str
    node: str
    host: str
    resources: dict[str, float]
    trains: Occupant | None = None
    usage: ProcessUsage | None = None
    seen: datetime

    @property
    def short_name(self) -> str:
        """What tells it from the others of its cluster: a slot of Ray's has its shape and node in its name too."""
        parts = self.name.split(":")
        return parts[4] if len(parts) > 4 else self.name


class NodeView(View):
    """A machine of the cluster, what it offers and how much of that its slots hold."""

    uid: str
    host: str
    alive: bool
    resources: dict[str, float]
    held: dict[str, float]
    seen: datetime


class WaitingSweep(View):
    """A sweep of which trials wait, and why."""

    id: int
    name: str
    actor: str | None = None
    state: SweepState
    priority: int
    waiting: dict[WaitReason, int]
    notice: str | None = None


class ClusterView(View):
    """Nodes, slots and the queue, as the conductor saw them last."""

    conducted: bool
    heartbeat_seconds: float | None = None
    """How long ago the conductor renewed its lease; none: there never was one."""
    nodes: list[NodeView]
    slots: list[SlotView]
    queue: list[WaitingSweep]


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
