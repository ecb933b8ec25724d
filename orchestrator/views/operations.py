"""The cluster and its operation as clients see them: nodes, slots, capacity, storage, collection, deliveries."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil, floor
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from orchestrator.spec.spec import Slot
from orchestrator.views.accounts import QuotaUse
from orchestrator.views.pages import View
from orchestrator.views.states import SweepState, TrialState
from workers.catalog import Finding, Need


class CollectionPolicy(View):
    """Which weights to remove: of trainings of ended sweeps, by age, state and rank."""

    before: datetime  # the trainings ended before
    states: list[TrialState] = Field(
        default_factory=lambda: [TrialState.FINISHED, TrialState.FAILED, TrialState.CANCELLED, TrialState.PRUNED]
    )
    keep: int = Field(default=1, ge=1, le=10_000)  # the best candidates of each cell that keep their weights

    @property
    def reason(self) -> str:
        """The policy in words, as the reason why weights were removed."""
        states = ", ".join(self.states)
        best = "its best candidate" if self.keep == 1 else f"its {self.keep} best candidates"
        return f"{states}, ended before {self.before:%Y-%m-%d %H:%M} UTC; each cell keeps {best}"


class CollectedView(View):
    """The removal of a training's kept weights."""

    at: datetime
    reason: str
    request: int
    files: int
    bytes: int
    removed: bool  # False while the files are still to be removed


class CollectableSweep(View):
    """The weights that a retention policy removes of one sweep."""

    sweep: int
    name: str
    trainings: int
    files: int
    bytes: int
    kept: int  # trainings that keep their weights
    retrained: list[str]  # columns that could be evaluated from these weights, and then need another training
    request: int | None = None  # the request to the conductor; null for a dry run


class CollectionView(View):
    """The weights that a retention policy removes."""

    dry_run: bool
    sweeps: list[CollectableSweep]
    bytes: int


class SweepStorage(View):
    """The bytes that the trainings of a sweep store; shared trainings count for each sweep."""

    sweep: int
    name: str
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int


class StorageView(View):
    """The bytes that the installation stores, by sweep and kind."""

    database_bytes: int | None  # null if it is not known
    weights_bytes: int
    figures_bytes: int
    spools_bytes: int
    logs_bytes: int  # of trainings, in the database
    decoded_bytes: int | None  # decoded images on the machine of this API
    sweeps: list[SweepStorage]  # the largest first


class DeliveryEvent(StrEnum):
    """The events of which webhook messages notify."""

    FINISHED = "sweep.finished"
    FAILED = "sweep.failed"
    CANCELLED = "sweep.cancelled"
    STALLED = "sweep.stalled"  # one of its trainings was stopped after being silent (`slot.stall_minutes`)
    BLOCKED = "sweep.blocked"  # trials wait for a node that can hold their slots, or for data that no machine has


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook message about one event."""

    id: int
    uid: str
    event: DeliveryEvent
    sweep: int
    message: Mapping[str, Any]
    at: datetime
    tries: int  # failed attempts
    age: float  # seconds since it was recorded, by the database's clock


@dataclass(frozen=True, slots=True)
class DeliveryBacklog:
    """The numbers of webhook messages that were not delivered."""

    waiting: int
    seconds: float  # the age of the oldest
    failing: int  # whose last attempt failed
    given_up: int  # of those that are still kept
    error: str | None = None  # of the last that failed or was given up


@dataclass(frozen=True, slots=True)
class Backlog:
    """The numbers of MLflow runs that do not show their present state."""

    runs: int
    seconds: float  # the age of the oldest
    failing: int  # whose last attempt failed
    error: str | None = None  # of one of these


class Check(View):
    """The result of checking one thing that the service needs, such as its database."""

    name: str
    ok: bool
    detail: str


class Disk(View):
    """A folder that grows, with the free space of its disk."""

    name: str
    free_bytes: int
    size_bytes: int


class Readiness(View):
    """Whether the service can do its work, with the checks behind it."""

    ok: bool
    checks: list[Check]


class MirrorView(BaseModel):
    """Runs of a sweep, or of all sweeps, that MLflow does not show yet."""

    waiting: int
    error: str | None = None  # the last error of one of them


class DataFinding(BaseModel):
    """The state of a data set in the data folder of a node, as last inspected."""

    host: str
    node: str  # Ray's identifier, since host names may repeat
    data: str  # a data set, with the hyper-parameters that decide on its files, and weights
    state: Literal["ok", "missing", "wrong", "unknown"]
    message: (
        str  # the folder, what was found and how to get the data; if it is there, the files that are ignored and why
    )
    inspected_at: datetime


class WaitReason(StrEnum):
    """The reason why a trial waits."""

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
"""The reasons in words."""


SYSTEM: Final = "system/"
"""The prefix of curves of a training's usage of its machine; MLflow has a tab of its own for it."""


class GpuUsage(View):
    """A GPU of a slot's process, as measured by NVML."""

    index: int
    name: str
    memory_bytes: int
    memory_used_bytes: int  # by all processes
    busy: float | None = None  # the share of the last moments in which it computed, if it is known


class ProcessUsage(View):
    """The usage of a slot's process, and the resources of its machine."""

    memory_bytes: int
    cpus: float  # CPUs in use, the mean since the last measurement
    machine_memory_bytes: int
    machine_memory_free_bytes: int
    machine_cpus: int
    machine_load: float | None = None  # the load average of the last minute
    gpus: list[GpuUsage] | None = None  # null without a GPU or NVML


@dataclass(frozen=True, slots=True)
class SlotReport:
    """A slot as its engine reports it."""

    name: str
    node: str  # the first characters of its node's uid
    host: str
    resources: Mapping[str, float]
    attempt: str | None = None
    usage: ProcessUsage | None = None
    lag: float | None = None  # the age of the oldest message that is not recorded, in seconds


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
    """A slot and what it trains."""

    name: str
    node: str
    host: str
    resources: dict[str, float]
    trains: Occupant | None = None
    usage: ProcessUsage | None = None
    seen: datetime

    @property
    def short_name(self) -> str:
        """The unique part of a slot's name, without the shape and node in names of Ray's slots."""
        parts = self.name.split(":")
        return parts[4] if len(parts) > 4 else self.name


class NodeView(View):
    """A machine of the cluster with its resources, and how much of them slots hold."""

    uid: str
    host: str
    alive: bool
    resources: dict[str, float]
    used: dict[str, float]
    seen: datetime


class WaitingSweep(View):
    """A sweep with waiting trials, and why they wait."""

    id: int
    name: str
    actor: str | None = None
    state: SweepState
    priority: int
    waiting: dict[WaitReason, int]
    notice: str | None = None


class ClusterView(View):
    """Nodes, slots and the queue, as the conductor last reported them."""

    conducted: bool
    heartbeat_seconds: float | None = None  # since the last renewal of the lease; null without any conductor so far
    nodes: list[NodeView]
    slots: list[SlotView]
    queue: list[WaitingSweep]


@dataclass(frozen=True, slots=True)
class Gauges:
    """The present values of the database for Prometheus."""

    sweeps: Mapping[str, int]  # by state
    trials: Mapping[str, int]  # by state
    attempts: Mapping[tuple[str, str], int]  # by state and cause ("" without a cause)
    waiting: Mapping[str, int]  # by reason
    slots: Sequence[SlotView]
    offered: Mapping[str, float]  # by living nodes, by resource
    used: Mapping[str, float]  # by training slots, by resource
    backlog: Backlog
    deliveries: DeliveryBacklog
    report_lag: float
    heartbeat: float | None
    quotas: Sequence[QuotaUse] = ()  # of projects, without users


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster with all its resources, free or not."""

    uid: str
    host: str
    resources: Mapping[str, float]  # CPU, GPU, memory (bytes), and custom ones by name


@dataclass(frozen=True, slots=True)
class PlannedContent:
    """The hashes of the data with which a sweep is planned."""

    uid: str  # of the sweep
    known: Mapping[str, Mapping[str, str]]  # by the key of the need


@dataclass(frozen=True, slots=True)
class Inspected:
    """The state of a data set in the data folder of a node, as inspected for the conductor."""

    node: str  # its uid
    host: str
    need: Need
    finding: Finding
    inspected_at: datetime


_GRAIN: Final = 10_000
"""Ray counts resources in ten-thousandths: three slots of 0.3333 GPUs fit one GPU, three of 0.33334 do not."""
_SLACK: Final = 1e-6
LACK: Final = "no node of the cluster can hold a slot of"  # the beginning of a shortage's sentence
MOST_SLOTS: Final = 1_000  # slots that are counted of a node
MOST_TRAININGS: Final = 256
"""Most trainings at once: on Ray each is followed by a trial of Tune, which has its own process."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The amounts of CPUs, GPUs and other resources of one slot."""

    cpus: float
    gpus: float  # whole GPUs, or a share 1/k of one
    memory: int  # bytes
    resources: tuple[tuple[str, float], ...] = ()  # custom ones by name, in order

    @classmethod
    def of(cls, bundle: Mapping[str, float]) -> "Shape":
        """The shape with the amounts that Ray names."""
        custom = dict(bundle)
        cpus, gpus, memory = (custom.pop(name, 0.0) for name in ("CPU", "GPU", "memory"))
        return cls(cpus, gpus, int(memory), tuple(sorted(custom.items())))

    @property
    def bundle(self) -> dict[str, float]:
        """The amounts of a slot's resources by Ray's names."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory, **dict(self.resources)}
        return {name: amount for name, amount in amounts.items() if amount}


def shape_of(slot: Slot, nodes: Iterable[Node]) -> Shape:
    """The resources of a slot; `auto` is one GPU if a node has any."""
    if slot.gpus == "auto":
        gpus = 1.0 if any(node.resources.get("GPU", 0.0) >= 1 for node in nodes) else 0.0
    else:
        gpus = slot.gpus if slot.gpus in (0, 1) or slot.gpus > 1 else floor(_GRAIN / round(1 / slot.gpus)) / _GRAIN
    memory = int((slot.memory_gb or 0) * 2**30)
    custom = sorted((name, _grained(amount)) for name, amount in slot.resources.items())
    return Shape(_grained(slot.cpus), float(gpus), memory, tuple(custom))


def holds(node: Node, used: Iterable[Shape], wanted: Shape) -> bool:
    """Whether a node on which slots use `used` has room for one more slot."""
    shapes = [*used, wanted]
    if wanted.gpus and _gpus(shapes) > node.resources.get("GPU", 0.0):
        return False
    return all(
        sum(shape.bundle.get(name, 0.0) for shape in shapes) <= node.resources.get(name, 0.0) + _SLACK
        for name in wanted.bundle
        if name != "GPU"
    )


def possible(slot: Slot, nodes: Sequence[Node]) -> bool:
    """Whether one of the nodes could hold such a slot if it were empty."""
    wanted = shape_of(slot, nodes)
    return any(holds(node, (), wanted) for node in nodes)


def capacity(slot: Slot, nodes: Sequence[Node]) -> int:
    """How many such slots the nodes could hold together if they were empty, up to a thousand a node."""
    wanted, counts = shape_of(slot, nodes), range(MOST_SLOTS)
    return sum(bisect_left(counts, True, key=lambda held: not holds(node, [wanted] * held, wanted)) for node in nodes)


def shortage(slot: Slot, nodes: Sequence[Node]) -> str | None:
    """The reason why no node can hold such a slot even if empty, or `None`."""
    if possible(slot, nodes) or not any(node.resources.get("CPU") for node in nodes):  # a head may offer no CPU
        return None
    wanted = shape_of(slot, nodes)
    needed = {"CPU": wanted.cpus, "GPU": wanted.gpus, **wanted.bundle}
    most = {name: max(node.resources.get(name, 0.0) for node in nodes) for name in needed}
    return f"{LACK} {_in_words(needed)}; the most that one has is {_in_words(most)}"


def _grained(amount: float) -> float:
    return max(1, round(amount * _GRAIN)) / _GRAIN


def _gpus(shapes: Iterable[Shape]) -> int:
    """The GPUs that the shapes need. Equal shares are on the same GPUs, since Ray fills the fullest GPU with room."""
    shares = Counter(shape.gpus for shape in shapes if shape.gpus)
    return sum(ceil(count / round(1 / gpus)) if gpus < 1 else ceil(count * gpus) for gpus, count in shares.items())


def _in_words(amounts: Mapping[str, float]) -> str:
    words = [_amount(name, amount) for name, amount in amounts.items()]
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        size = amount / 2**30
        return (f"{size:.1f}".removesuffix(".0") if size >= 0.1 else f"{size:.1g}") + " GB"
    if name in ("CPU", "GPU"):
        return f"{amount:g} {name}" + ("" if amount == 1 else "s")
    return f"{amount:g} {name}"


def too_large(warnings: Sequence[str]) -> list[str]:
    """The warnings about slots that no node can hold."""
    return [warning for warning in warnings if warning.startswith(LACK)]
