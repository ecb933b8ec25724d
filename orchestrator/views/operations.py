"""The cluster as clients see it: nodes, slots, room, collection of weights, deliveries."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, floor
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from orchestrator.spec.axes import Slot
from orchestrator.views.accounts import QuotaUse
from orchestrator.views.pages import View
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import Finding, Need

ENDED = (TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED)


class CollectionPolicy(View):
    """Which trainings' weights may go: of sweeps that have ended, by age, state and rank."""

    before: datetime
    """Those that ended before."""
    states: list[TrialState] = Field(default_factory=lambda: list(ENDED))
    keep: int = Field(default=1, ge=1, le=10_000)
    """So many candidates of each cell, the best by the sweep's own rule, keep theirs."""

    @property
    def reason(self) -> str:
        """In words, as it stands beside what went."""
        states = ", ".join(self.states)
        best = "its best candidate" if self.keep == 1 else f"its {self.keep} best candidates"
        return f"{states}, ended before {self.before:%Y-%m-%d %H:%M} UTC; each cell keeps {best}"


class CollectedView(View):
    """Weights of a training that were collected."""

    at: datetime
    reason: str
    request: int
    files: int
    bytes: int
    removed: bool
    """False: the record is made and the files are still to go."""


class CollectableSweep(View):
    """What a policy would take of one sweep."""

    sweep: int
    name: str
    trainings: int
    files: int
    bytes: int
    kept: int
    """Trainings of it that keep their weights."""
    retrained: list[str]
    """Columns that today would be evaluated of the kept weights, and then would have to be trained for."""
    request: int | None = None
    """What the conductor was asked; none: nothing was, it was a dry run."""


class CollectionView(View):
    """What a policy would take, or was asked to."""

    dry_run: bool
    sweeps: list[CollectableSweep]
    bytes: int


class SweepStorage(View):
    """What the trainings of one sweep keep in the storage; what several sweeps share counts for each."""

    sweep: int
    name: str
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int


class StorageView(View):
    """What the installation has on disk."""

    database_bytes: int | None
    """None: the database does not tell."""
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int
    """Of trainings, in the database."""
    decoded_bytes: int | None
    """Images that lie decoded on the machine of this API."""
    sweeps: list[SweepStorage]
    """The largest first."""


class DeliveryEvent(StrEnum):
    """What is told."""

    FINISHED = "sweep.finished"
    FAILED = "sweep.failed"
    CANCELLED = "sweep.cancelled"
    STALLED = "sweep.stalled"
    """A training of it was silent for so long that it was stopped (`slot.stall_minutes`)."""
    HINDERED = "sweep.hindered"
    """Trials of it wait for a node that can hold their slots, or for data that no machine has."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event that is still to be told."""

    id: int
    uid: str
    event: DeliveryEvent
    sweep: int
    said: Mapping[str, Any]
    at: datetime
    tries: int  # that were in vain
    age: float  # seconds since it was noted, by the database's clock


@dataclass(frozen=True, slots=True)
class DeliveryBacklog:
    """What the webhook was not told."""

    waiting: int
    seconds: float  # since when the oldest of them waits
    failing: int  # of which the last try was in vain
    given_up: int  # within the days for which these are kept
    error: str | None = None  # of the last one that failed or was given up


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


_GRAIN: Final = 10_000
"""Ray counts resources in ten-thousandths; three slots of 0.3333 GPUs fit one GPU, of 0.33334 they do not."""
_SLACK: Final = 1e-6
LACK: Final = "no node of the cluster can hold a slot of"
"""How a shortage begins."""
MOST_SLOTS: Final = 1_000
"""Slots that are counted."""
MOST_TRAININGS: Final = 256
"""Trainings that run at once: on Ray each is followed by a trial of Tune, which has a process of its own."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one slot takes of a node."""

    cpus: float
    gpus: float  # whole GPUs, or a share 1/k of one
    memory: int  # bytes
    resources: tuple[tuple[str, float], ...] = ()  # custom ones by name, in order

    @property
    def bundle(self) -> dict[str, float]:
        """The amounts by Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory, **dict(self.resources)}
        return {name: amount for name, amount in amounts.items() if amount}


def shape_of(slot: Slot, nodes: Iterable[Node]) -> Shape:
    """What a slot takes; `auto` is one GPU where a node has any."""
    if slot.gpus == "auto":
        gpus = 1.0 if any(node.resources.get("GPU", 0.0) >= 1 for node in nodes) else 0.0
    else:
        gpus = slot.gpus if slot.gpus in (0, 1) or slot.gpus > 1 else floor(_GRAIN / round(1 / slot.gpus)) / _GRAIN
    memory = int((slot.memory_gb or 0) * 2**30)
    custom = sorted((name, _grained(amount)) for name, amount in slot.resources.items())
    return Shape(_grained(slot.cpus), float(gpus), memory, tuple(custom))


def holds(node: Node, held: Iterable[Shape], wanted: Shape) -> bool:
    """Whether a node that holds the shapes `held` has room for one more."""
    shapes = [*held, wanted]
    if wanted.gpus and _gpus(shapes) > node.resources.get("GPU", 0.0):
        return False
    return all(
        sum(shape.bundle.get(name, 0.0) for shape in shapes) <= node.resources.get(name, 0.0) + _SLACK
        for name in wanted.bundle
        if name != "GPU"
    )


def possible(slot: Slot, nodes: Sequence[Node]) -> bool:
    """Whether one of the nodes could hold such a slot, were it empty."""
    wanted = shape_of(slot, nodes)
    return any(holds(node, (), wanted) for node in nodes)


def slots(slot: Slot, nodes: Sequence[Node]) -> int:
    """How many such slots the nodes can hold at once, were they empty."""
    wanted, total = shape_of(slot, nodes), 0
    for node in nodes:
        held: list[Shape] = []
        while len(held) < MOST_SLOTS and holds(node, held, wanted):
            held.append(wanted)
        total += len(held)
    return min(total, MOST_SLOTS)


def capacity(slot: Slot, nodes: Sequence[Node]) -> int:
    """How many such slots the nodes could hold together, were they empty; counted up to a thousand a node."""
    wanted = shape_of(slot, nodes)
    return sum(_most(node, wanted) for node in nodes)


def shortage(slot: Slot, nodes: Sequence[Node]) -> str | None:
    """Why none of the nodes could hold such a slot, were it empty; none when one can, or none offers a CPU.

    A head and a conductor may offer no CPU: until a worker joins, that says nothing of the cluster.
    """
    if not any(node.resources.get("CPU") for node in nodes):
        return None
    if possible(slot, nodes):
        return None
    wanted = shape_of(slot, nodes)
    asked = {"CPU": wanted.cpus, "GPU": wanted.gpus, **wanted.bundle}
    most = {name: max(node.resources.get(name, 0.0) for node in nodes) for name in asked}
    return f"{LACK} {_said(asked)}; the most that one has is {_said(most)}"


def _most(node: Node, wanted: Shape) -> int:
    return bisect_right(range(1, 1_001), 0, key=lambda count: 0 if holds(node, [wanted] * (count - 1), wanted) else 1)


def _grained(amount: float) -> float:
    return max(1, round(amount * _GRAIN)) / _GRAIN


def _gpus(shapes: Iterable[Shape]) -> int:
    """The GPUs that the shapes need; shares of one size lie together, since Ray fills the fullest GPU that has room."""
    shares = Counter(shape.gpus for shape in shapes if shape.gpus)
    return sum(ceil(count / round(1 / gpus)) if gpus < 1 else ceil(count * gpus) for gpus, count in shares.items())


def _said(amounts: Mapping[str, float]) -> str:
    said = [_amount(name, amount) for name, amount in amounts.items()]
    return " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        size = amount / 2**30
        return (f"{size:.1f}".removesuffix(".0") if size >= 0.1 else f"{size:.1g}") + " GB"
    if name in ("CPU", "GPU"):
        return f"{amount:g} {name}" + ("" if amount == 1 else "s")
    return f"{amount:g} {name}"


def too_large(warnings: Sequence[str]) -> list[str]:
    """Those of the warnings that are about slots."""
    return [one for one in warnings if one.startswith(LACK)]
