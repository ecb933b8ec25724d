"""What the cluster is and does, as clients see it: nodes, slots, who uses what, and why trials wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from orchestrator.views.lifecycle import SweepState
from orchestrator.views.pages import View


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
