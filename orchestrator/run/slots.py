"""The slots of a cluster: makes, finds, hands out and ends detached slot actors."""

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnschedulableError, GetTimeoutError, RayActorError, RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.room import Shape, holds, shape_of
from orchestrator.run.nodes import alive_nodes
from orchestrator.run.slot_actor import SlotActor
from orchestrator.trial import Node, Order, Slot

NAMESPACE: Final = "metricsweep"
PREFIX: Final = "slot"
ANSWER_SECONDS: Final = 20.0
"""A live actor answers `describe` in milliseconds; one that takes this long is treated as gone."""
LATE_SECONDS: Final = 30.0
"""An actor that has not begun by then waits for room, which nothing else on its node may take before it."""
LOOK_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 600.0
"""An actor that nothing uses for so long is ended: it keeps its node from being scaled away."""

_LEAST: Final = Shape(cpus=1.0, gpus=0.0, memory=0)


@dataclass(slots=True)
class HeldSlot:
    """A slot actor as the pool knows it."""

    name: str
    shape: Shape
    node: str  # the first characters of its node's uid
    actor: ActorHandle
    attempt: str | None = None
    claimed: bool = True  # False: it was found training, and no order stands for that yet
    answer: Any = None  # what a new actor says of itself once it has begun; none: it has
    since: float = field(default_factory=time.monotonic)  # when it was made, and later when it was given back

    @property
    def late(self) -> bool:
        """Whether its actor still waits for room."""
        if self.answer is None or time.monotonic() - self.since <= LATE_SECONDS:
            return False
        return not ray.wait([self.answer], timeout=0)[0]

    @property
    def begun(self) -> bool:
        """Whether its actor ever was there; also when its own creation raised, which is no fault of the node's."""
        if self.answer is None:
            return True
        try:
            ray.get(self.answer, timeout=0)
        except (ActorUnschedulableError, GetTimeoutError):
            return False
        except RayActorError as error:
            return bool(error.actor_init_failed)
        except RayError:
            return True
        self.answer = None
        return True


class SlotPool:
    """The slots that this conductor may use; it makes one when there is room and ends idle ones of another shape.

    They live in a namespace of the installation: another one on the same cluster must not end them as nobody's.
    """

    def __init__(self, limit: int | None, installation: str) -> None:
        self._limit = limit
        self.namespace = f"{NAMESPACE}-{installation}"
        self._slots: dict[str, HeldSlot] = {}
        self._nodes: list[Node] = []
        self._looked = float("-inf")
        self._expected: list[Slot] = []
        self._adopt()

    def _adopt(self) -> None:
        """Take over the actors that an earlier conductor left; those that do not answer are ended."""
        for entry in list_named_actors(all_namespaces=True):
            if entry["namespace"] != self.namespace or not entry["name"].startswith(f"{PREFIX}:"):
                continue
            name = entry["name"]
            try:
                actor = ray.get_actor(name, namespace=self.namespace)
            except ValueError:
                continue  # it ended meanwhile
            try:
                state = ray.get(actor.describe.remote(), timeout=ANSWER_SECONDS)
            except (RayActorError, ActorUnschedulableError, GetTimeoutError):
                ray.kill(actor)  # else its training might go on beside the attempt that replaces it
                continue
            shape, node = _read_name(name)
            attempt = state["attempt"] if state["busy"] else None
            self._slots[name] = HeldSlot(name, shape, node, actor, attempt, claimed=attempt is None)

    def nodes(self) -> Sequence[Node]:
        """The nodes that are there now, as of a second ago at most."""
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._nodes = alive_nodes()
            self._looked = time.monotonic()
            there = {"", *(_short(node.uid) for node in self._nodes)}
            for idle in self._idle():
                if idle.node not in there:  # it went with its node: whoever took it would lose an attempt
                    self.drop(idle)
        return self._nodes

    def holding(self, name: str | None, attempt: str) -> HeldSlot | None:
        """The slot of that name if it trains, or has just trained, this attempt."""
        slot = self._slots.get(name or "")
        if slot is None:
            return None
        try:
            state: dict[str, Any] = ray.get(slot.actor.describe.remote(), timeout=ANSWER_SECONDS)
        except (RayActorError, ActorUnschedulableError, GetTimeoutError):
            self.drop(slot)
            return None
        if state["attempt"] != attempt:
            return None
        slot.attempt, slot.claimed = attempt, True
        return slot

    def take(self, order: Order) -> HeldSlot | None:
        """A free slot of the order's shape, now the order's; none: wait until one is given back."""
        shape = shape_of(order.slot, self.nodes())
        late = self._late()
        for idle in self._idle():
            if idle.node in late:
                self.drop(idle)
        slot = next((idle for idle in self._idle() if idle.shape == shape), None)
        if slot is None:
            slot = self._make(shape, late)
        if slot is not None:
            slot.attempt = order.attempt
        return slot

    def possible(self, slot: Slot) -> bool:
        """Whether a node that is there could hold such a slot, were it empty."""
        shape = shape_of(slot, self.nodes())
        return any(holds(node, (), shape) for node in self.nodes())

    def expect(self, waiting: Sequence[Slot]) -> None:
        """Which slots trainings wait for: an order is taken once one of these can be had."""
        self._expected = list({slot.model_dump_json(): slot for slot in waiting}.values())

    def full(self) -> bool:
        """True when no order can be taken: every slot is in use and there is no room for another."""
        late, nodes = self._late(), self.nodes()
        if self._limit is not None and len(self._busy()) >= self._limit:
            return True
        wanted = [slot for slot in self._expected if self.possible(slot)]  # the others are not given out
        shapes = [shape_of(slot, nodes) for slot in wanted] or [_LEAST]
        if any(idle.node not in late and (not wanted or idle.shape in shapes) for idle in self._idle()):
            return False
        return not any(self._room(shape, late) for shape in shapes)

    def rest(self) -> None:
        """End the actors that nothing has used for long."""
        for idle in self._idle():
            if time.monotonic() - idle.since > IDLE_SECONDS:
                self.drop(idle)

    def training(self) -> list[Shape]:
        """The shapes of the slots that train."""
        return [slot.shape for slot in self._busy()]

    def release(self, slot: HeldSlot) -> None:
        """Give a slot back."""
        slot.attempt, slot.since = None, time.monotonic()

    def drop(self, slot: HeldSlot) -> None:
        """End an actor that is dead, stuck or of a shape that nobody waits for."""
        self._slots.pop(slot.name, None)
        ray.kill(slot.actor)

    def lost(self, slot: HeldSlot) -> None:
        """End an actor that was lost, and the idle ones beside it: its node may be gone before Ray knows."""
        self.drop(slot)
        for idle in self._idle():
            if idle.node == slot.node:
                self.drop(idle)

    def leave(self) -> None:
        """End the slots that train nothing; their room is not ours while nobody conducts."""
        for idle in self._idle():
            self.drop(idle)

    def unclaimed(self) -> bool:
        """Whether a slot trains what no order stands for yet."""
        return any(not slot.claimed for slot in self._slots.values())

    def reap(self) -> None:
        """End what no order stands for: it was cancelled or superseded while no conductor lived."""
        for slot in list(self._slots.values()):
            if not slot.claimed:
                self.drop(slot)

    def _idle(self) -> list[HeldSlot]:
        return [slot for slot in self._slots.values() if slot.attempt is None]

    def _busy(self) -> list[HeldSlot]:
        return [slot for slot in self._slots.values() if slot.attempt is not None]

    def _late(self) -> set[str]:
        return {slot.node for slot in self._busy() if slot.late}

    def _room(self, shape: Shape, late: set[str]) -> Node | None:
        """The node that could hold one more, were its idle slots ended: one without GPUs where none is asked for, then
        the one with the most CPUs free."""
        busy = self._busy()
        found: list[tuple[bool, float, Node]] = []
        for node in self.nodes():
            held = _shapes_on(node, busy)
            if _short(node.uid) not in late and holds(node, held, shape):
                free = node.resources.get("CPU", 0.0) - sum(one.cpus for one in held)
                found.append((bool(shape.gpus) or not node.resources.get("GPU"), free, node))
        return max(found, key=lambda one: one[:2])[2] if found else None

    def _make(self, shape: Shape, late: set[str]) -> HeldSlot | None:
        node = self._room(shape, late)
        if node is None or (self._limit is not None and len(self._busy()) >= self._limit):
            return None
        idle = sorted(self._idle(), key=lambda slot: slot.node != _short(node.uid))  # those in the way first
        for slot in idle:
            crowded = self._limit is not None and len(self._slots) >= self._limit
            if not crowded and holds(node, _shapes_on(node, self._slots.values()), shape):
                break
            self.drop(slot)
        name = _name(shape, node)
        options: dict[str, Any] = {"num_cpus": shape.cpus, "num_gpus": shape.gpus, "max_concurrency": 8}
        if shape.memory:
            options["memory"] = shape.memory
        if shape.resources:
            options["resources"] = dict(shape.resources)
        # The pool counts by node: Ray's own choice of another one would leave the room that was counted on.
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node.uid, soft=False)
        named = {"name": name, "namespace": self.namespace, "lifetime": "detached"}
        actor = ray.remote(SlotActor).options(**named, **options).remote()
        self._slots[name] = HeldSlot(name, shape, _short(node.uid), actor, answer=actor.describe.remote())
        return self._slots[name]


def _shapes_on(node: Node, slots: Iterable[HeldSlot]) -> list[Shape]:
    return [slot.shape for slot in slots if slot.node == _short(node.uid)]


def _short(uid: str) -> str:
    return uid[:12]


def _name(shape: Shape, node: Node) -> str:
    custom = urlencode(shape.resources)
    size = f"{shape.cpus:.10g}:{shape.gpus:.10g}:{shape.memory}"
    return f"{PREFIX}:{size}:{uuid.uuid4().hex[:8]}:{_short(node.uid)}:{custom}"


def _read_name(name: str) -> tuple[Shape, str]:
    """The shape and the node of a slot; earlier versions named neither node nor custom resources."""
    _, cpus, gpus, memory, _, node, custom = (name + "::").split(":")[:7]
    resources = tuple((key, float(value)) for key, value in parse_qsl(custom))
    return Shape(float(cpus), float(gpus), int(float(memory)), resources), node


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
