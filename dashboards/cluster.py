"""The page of the cluster: what it offers, what each slot trains and takes, and what waits for what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboards.rendering import render
from orchestrator.views.accounts import QuotaUse
from orchestrator.views.operations import REASONS, ClusterView, GpuUsage, NodeView, SlotView, WaitingSweep

REFRESH_SECONDS: Final = 3
GIB: Final = 2**30
_UNITS: Final = {"CPU": "CPU", "GPU": "GPU", "memory": "GB"}


@dataclass(frozen=True, slots=True)
class Bar:
    """So much of so much, drawn as a bar with its words beside it."""

    share: float  # 0 to 1
    words: str
    title: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A node with what it offers and holds."""

    node: NodeView
    meters: Sequence[Bar]
    memory: Bar | None  # of the whole machine, as a slot on it said
    load: str
    slots: int
    busy: int


def cluster_page(cluster: ClusterView, quotas: Sequence[QuotaUse] = (), *, now: datetime | None = None) -> str:
    """Nodes, slots, the queue and quotas; asks for itself again every few seconds."""
    there = [node for node in cluster.nodes if node.alive]
    gone = [node for node in cluster.nodes if not node.alive]
    busy = sum(slot.trains is not None for slot in cluster.slots)
    return render(
        "cluster.html", now, cluster=cluster, gone=gone, busy=busy,
        machines=[_machine(node, cluster.slots) for node in there],
        waiting=sum(sum(one.waiting.values()) for one in cluster.queue),
        reasons=_reasons(cluster.queue), words=REASONS, gpus=_gpus, holds=_of_slot, memory=_memory,
        quotas=quotas, used=_used, active=True, refresh=REFRESH_SECONDS,
    )  # fmt: skip


def _machine(node: NodeView, slots: Sequence[SlotView]) -> Machine:
    ours = [slot for slot in slots if node.uid.startswith(slot.node)]
    usages = [slot.usage for slot in ours if slot.usage is not None]
    memory, load = None, ""
    if usages:
        said = usages[-1]
        taken = said.machine_memory_bytes - said.machine_memory_free_bytes
        memory = _meter(taken, said.machine_memory_bytes, "memory", "in use on the machine")
        load = "" if said.machine_load is None else f"load {said.machine_load:.1f} on {said.machine_cpus} CPUs"
    names = [name for name in ("CPU", "GPU") if node.resources.get(name)]
    names += sorted(name for name in node.resources if name not in _UNITS and not name.startswith(("node:", "object")))
    meters = [_meter(node.held.get(name, 0.0), node.resources[name], name, "held by slots") for name in names]
    return Machine(node, meters, memory, load, len(ours), sum(slot.trains is not None for slot in ours))


def _meter(taken: float, whole: float, name: str, what: str) -> Bar:
    unit = _UNITS.get(name, name)
    if name == "memory":
        taken, whole = taken / GIB, whole / GIB
        words = f"{taken:.1f} of {whole:.1f} {unit}"
    else:
        words = f"{taken:.4g} of {whole:.4g} {unit}{'s' if whole != 1 and name in _UNITS else ''}"
    return Bar(min(1.0, taken / whole) if whole else 0.0, words, f"{words} {what}")


def _of_slot(resources: Mapping[str, float]) -> str:
    """What a slot holds of its node: `4 CPUs, 0.5 GPU`."""
    said = []
    for name, amount in resources.items():
        if name == "memory":
            said.append(f"{amount / GIB:.3g} GB")
        else:
            said.append(f"{amount:.3g} {name}{'s' if amount > 1 and name in _UNITS else ''}")
    return ", ".join(said)


def _gpus(slot: SlotView) -> list[tuple[GpuUsage, Bar, Bar | None]]:
    """The GPUs of a slot: memory, and how busy each is."""
    shown = []
    for gpu in (slot.usage and slot.usage.gpus) or ():
        memory = _meter(gpu.memory_used_bytes, gpu.memory_bytes, "memory", f"in use on {gpu.name}")
        busy = None if gpu.busy is None else Bar(gpu.busy, f"{gpu.busy:.0%} busy", f"{gpu.name} computes")
        shown.append((gpu, memory, busy))
    return shown


def _memory(slot: SlotView) -> str:
    return "" if slot.usage is None else f"{slot.usage.memory_bytes / GIB:.2f} GB"


def _used(quota: QuotaUse) -> list[Bar]:
    """What is used of each thing that the quota limits."""
    return [
        Bar(min(1.0, used / most) if most else 1.0, f"{used:.4g} of {most:.4g} {what}", f"{used:.4g} {what} used")
        for what, used, most in quota.amounts
        if most is not None
    ]


def _reasons(queue: Sequence[WaitingSweep]) -> list[tuple[str, int]]:
    """Why trials wait, over all sweeps, the most frequent first."""
    total: dict[str, int] = {}
    for sweep in queue:
        for reason, count in sweep.waiting.items():
            total[REASONS[reason]] = total.get(REASONS[reason], 0) + count
    return sorted(total.items(), key=lambda pair: -pair[1])
