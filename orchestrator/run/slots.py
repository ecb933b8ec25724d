"""The slots of a cluster: makes, finds, hands out and ends detached slot actors."""

import time
import uuid
from dataclasses import dataclass
from typing import Any, Final

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayActorError
from ray.util import list_named_actors

from orchestrator.run.slot_actor import SlotActor
from orchestrator.trial import Order, Slot

NAMESPACE: Final = "metricsweep"
PREFIX: Final = "slot"
ANSWER_SECONDS: Final = 20.0
"""A live actor answers `describe` in milliseconds; one that takes this long is treated as gone."""


@dataclass(slots=True)
class HeldSlot:
    """A slot actor as the pool knows it."""

    name: str
    shape: tuple[float, float, float]  # CPUs, GPUs, memory in bytes
    actor: ActorHandle
    attempt: str | None = None
    claimed: bool = True  # False: it was found training, and no order stands for that yet


def shape_of(slot: Slot, cluster_gpus: float) -> tuple[float, float, float]:
    """What Ray is asked for; `auto` is one GPU where the cluster has any."""
    gpus = (1.0 if cluster_gpus >= 1 else 0.0) if slot.gpus == "auto" else slot.gpus
    return (slot.cpus, gpus, (slot.memory_gb or 0) * 2**30)


class SlotPool:
    """The slots that this conductor may use; it makes one when there is room and ends idle ones of another shape."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._slots: dict[str, HeldSlot] = {}
        self._total = ray.cluster_resources()
        self._seen: dict[str, dict[str, float]] = {}  # what every node offered, also of those that are away
        self._adopt()

    def _adopt(self) -> None:
        """Take over the actors that an earlier conductor left; those that do not answer are ended."""
        for entry in list_named_actors(all_namespaces=True):
            if entry["namespace"] != NAMESPACE or not entry["name"].startswith(f"{PREFIX}:"):
                continue
            name = entry["name"]
            try:
                actor = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                continue  # it ended meanwhile
            try:
                state = ray.get(actor.describe.remote(), timeout=ANSWER_SECONDS)
            except (RayActorError, GetTimeoutError):
                ray.kill(actor)  # else its training might go on beside the attempt that replaces it
                continue
            _, cpus, gpus, memory, _ = name.split(":")
            shape = (float(cpus), float(gpus), float(memory))
            attempt = state["attempt"] if state["busy"] else None
            self._slots[name] = HeldSlot(name, shape, actor, attempt, claimed=attempt is None)

    def holding(self, name: str | None, attempt: str) -> HeldSlot | None:
        """The slot of that name if it trains, or has just trained, this attempt."""
        slot = self._slots.get(name or "")
        if slot is None:
            return None
        try:
            state: dict[str, Any] = ray.get(slot.actor.describe.remote(), timeout=ANSWER_SECONDS)
        except (RayActorError, GetTimeoutError):
            self.drop(slot)
            return None
        if state["attempt"] != attempt:
            return None
        slot.attempt, slot.claimed = attempt, True
        return slot

    def take(self, order: Order) -> HeldSlot | None:
        """A free slot of the order's shape, now the order's; none: wait until one is given back."""
        shape = shape_of(order.slot, self._total.get("GPU", 0.0))
        slot = next((slot for slot in self._slots.values() if slot.attempt is None and slot.shape == shape), None)
        if slot is None:
            slot = self._make(shape)
        if slot is not None:
            slot.attempt = order.attempt
        return slot

    def impossible(self, slot: Slot) -> str | None:
        """Why no node that was ever here could hold such a slot; none when one can, or when none has come yet."""
        cpus, gpus, memory = shape_of(slot, self._total.get("GPU", 0.0))
        self._seen |= {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}
        nodes = list(self._seen.values())
        wanted = {"CPU": cpus, "GPU": gpus, "memory": memory}
        # A head and a conductor may offer no CPU: until a worker joins, that says nothing of the cluster.
        if not any(node.get("CPU") for node in nodes) or any(
            all(node.get(kind, 0.0) >= amount for kind, amount in wanted.items()) for node in nodes
        ):
            return None
        most = {kind: max((node.get(kind, 0.0) for node in nodes), default=0.0) for kind in wanted}
        return (
            f"no node of the cluster can hold a slot of {cpus:g} CPUs, {gpus:g} GPUs and {memory / 2**30:g} GB; "
            f"the most that one has is {most['CPU']:g} CPUs, {most['GPU']:g} GPUs and {most['memory'] / 2**30:.1f} GB"
        )

    def full(self) -> bool:
        """True when no order can be taken: every slot is in use and there is no room for another."""
        if any(slot.attempt is None for slot in self._slots.values()):
            return False
        return not self._fits((1.0, 0.0, 0.0)) if self._slots else False

    def release(self, slot: HeldSlot) -> None:
        """Give a slot back."""
        slot.attempt = None

    def drop(self, slot: HeldSlot) -> None:
        """End an actor that is dead, stuck or of a shape that nobody waits for."""
        self._slots.pop(slot.name, None)
        ray.kill(slot.actor)

    def unclaimed(self) -> bool:
        """Whether a slot trains what no order stands for yet."""
        return any(not slot.claimed for slot in self._slots.values())

    def reap(self) -> None:
        """End what no order stands for: it was cancelled or superseded while no conductor lived."""
        for slot in list(self._slots.values()):
            if not slot.claimed:
                self.drop(slot)

    def _make(self, shape: tuple[float, float, float]) -> HeldSlot | None:
        while not self._fits(shape):
            idle = next((s for s in self._slots.values() if s.attempt is None and s.shape != shape), None)
            if idle is None:
                return None
            self.drop(idle)
        cpus, gpus, memory = shape
        name = f"{PREFIX}:{cpus:g}:{gpus:g}:{int(memory)}:{uuid.uuid4().hex[:8]}"
        options: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "max_concurrency": 8}
        if memory:
            options["memory"] = int(memory)
        actor = ray.remote(SlotActor).options(name=name, namespace=NAMESPACE, lifetime="detached", **options).remote()
        self._slots[name] = HeldSlot(name, shape, actor)
        return self._slots[name]

    def _fits(self, shape: tuple[float, float, float]) -> bool:
        """Whether the cluster has room beside our own slots; an empty pool may always try, and Ray waits for nodes."""
        if not self._slots:
            return True
        if self._limit is not None and len(self._slots) >= self._limit:
            return False
        self._total = ray.cluster_resources() or self._total
        used = [sum(slot.shape[axis] for slot in self._slots.values()) for axis in range(3)]
        total = (self._total.get("CPU", 0.0), self._total.get("GPU", 0.0), self._total.get("memory", 0.0))
        return all(used[axis] + shape[axis] <= total[axis] + 1e-9 for axis in range(3))


def connect(address: str | None, patience: float = 30.0) -> None:
    """Join the Ray cluster at `address`, or start a local one; ConnectionError when it does not answer."""
    if ray.is_initialized():
        return
    deadline = time.monotonic() + patience
    while True:
        try:
            ray.init(
                address=address or "local",
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level="error",
                include_dashboard=False if not address else None,
            )
            return
        except (ConnectionError, RuntimeError, ValueError) as error:
            if time.monotonic() > deadline:
                raise ConnectionError(f"Ray at {address} does not answer: {error}") from error
            time.sleep(1.0)
