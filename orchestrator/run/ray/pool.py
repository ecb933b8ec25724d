"""The slots of a Ray cluster: makes, adopts, assigns and ends detached slot actors."""

import contextlib
import logging
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnschedulableError, GetTimeoutError, RayActorError, RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Pool
from orchestrator.run.engine import Broker
from orchestrator.run.slot import PROTOCOL, REASON, SlotActor, lag
from orchestrator.views.operations import Node, ProcessUsage, Shape, SlotReport, holds, possible, shape_of
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)

NAMESPACE: Final = "metricsweep"
PREFIX: Final = "slot"
_LATE_SECONDS: Final = 30.0
"""A new actor that has not begun by then waits for resources, and no other actor is made on its node."""
_ANSWER_SECONDS: Final = 20.0  # an actor that does not answer `describe` for so long is treated as lost
REFRESH_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 600.0  # an actor that is idle for so long is ended, so that its node can be scaled away

_LEAST: Final = Shape(cpus=1.0, gpus=0.0, memory=0)


@dataclass(slots=True)
class PooledSlot:
    """A slot actor of Ray, as the conductor sees it."""

    name: str
    shape: Shape
    node: str  # the first characters of its node's uid
    actor: ActorHandle
    attempt: str | None = None
    claimed: bool = True  # False: it was adopted while training, and no order has claimed that attempt yet
    answer: Any = None  # the first description of a new actor, until it has begun
    foreign: bool = False  # it holds the code of another release
    fence: int = 0  # of the lease under which it gets orders
    since: float = field(default_factory=time.monotonic)  # when it was made, and later when it was released
    described: Mapping[str, Any] = field(default_factory=dict)  # the last description of the actor
    lag: float | None = None  # by that description
    _pending: Any = None  # the next description
    _requested_at: float = 0.0  # of that description

    def start(self, order: Order, workplace: Workplace) -> None:
        """Make the slot actor train an order."""
        self.actor.start.remote(order, workplace, self.fence)

    def stop(self, attempt: str) -> None:
        """Ask the slot actor to stop an attempt at its next step."""
        self.actor.stop.remote(attempt)

    @property
    def late(self) -> bool:
        """Whether the slot actor has waited for resources for too long."""
        if self.answer is None or time.monotonic() - self.since <= _LATE_SECONDS:
            return False
        return not ray.wait([self.answer], timeout=0)[0]

    @property
    def begun(self) -> bool:
        """Whether the slot actor ever ran, also if its constructor raised an error."""
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

    def report(self, seen: Mapping[str, int]) -> SlotReport:
        """The slot with its last description, for clients; `seen` has the recorded messages by attempt."""
        if self._pending is not None and ray.wait([self._pending], timeout=0)[0]:
            try:
                self.described = ray.get(self._pending)
                recorded = seen.get(self.described["attempt"] or "")
                waited = lag(self.described["message_count"], self.described["message_ages"], recorded)
                self.lag = None if waited is None else waited + time.monotonic() - self._requested_at
            except RayError:
                self.lag = None
            self._pending = None
        if self._pending is None and self.begun:
            self._pending, self._requested_at = self.actor.describe.remote(), time.monotonic()
        usage = self.described.get("usage")
        return SlotReport(
            name=self.name,
            node=self.node,
            host=self.described.get("host", ""),
            resources=self.shape.bundle,
            attempt=self.attempt,
            usage=None if usage is None else ProcessUsage.model_validate(usage),
            lag=self.lag if self.attempt is not None else None,
        )


class SlotPool(Pool[PooledSlot]):
    """The slots of a conductor. It makes a slot when a node has room, and ends idle slots of another shape for that.

    The actors are in a namespace of the installation, so that other installations do not end them. Each gets the
    fence of the lease at first, and from then on obeys no earlier conductor.
    """

    def __init__(self, broker: Broker, limit: int, edition: str = "") -> None:
        """Adopts the actors of an earlier conductor; raises FencedError if the broker has lost its lease."""
        super().__init__(limit)
        self._fence, self._edition = broker.fence(), edition
        self.namespace = f"{NAMESPACE}-{broker.installation()}"
        self._slots: dict[str, PooledSlot] = {}
        self._nodes: list[Node] = []
        self._refreshed = float("-inf")
        self._ending: set[str] = set()  # nodes that have announced their end
        ahead = self._adopt()
        if ahead:
            broker.installation()  # checks the lease; if it is still ours, the database is an older copy
            for actor in ahead:
                ray.kill(actor)

    def _adopt(self) -> list[ActorHandle]:
        """Take over the actors of an earlier conductor; end those that do not answer.

        An actor with another version of the interface is asked to stop first, so that its training continues from a
        checkpoint. Actors that have seen a later lease than ours are returned and not taken over.
        """
        ahead: list[ActorHandle] = []
        old: list[tuple[ActorHandle, str | None]] = []
        for entry in list_named_actors(all_namespaces=True):
            if entry["namespace"] != self.namespace or not entry["name"].startswith(f"{PREFIX}:"):
                continue
            name = entry["name"]
            try:
                actor = ray.get_actor(name, namespace=self.namespace)
            except ValueError:
                continue  # it has ended since
            try:
                state = ray.get(actor.describe.remote(), timeout=_ANSWER_SECONDS)
                if state.get("protocol") != PROTOCOL:
                    old.append((actor, state["attempt"]))
                    continue
                state = ray.get(actor.greet.remote(self._fence), timeout=_ANSWER_SECONDS)
            except (RayActorError, ActorUnschedulableError, GetTimeoutError):
                ray.kill(actor)  # otherwise its attempt might run at the same time as the next one
                continue
            if state["fence"] > self._fence:
                ahead.append(actor)
                continue
            shape, node = _read_name(name)
            if state.get("replace_reason") == REASON:
                self._ending.add(node)
            foreign = state.get("edition", "") != self._edition
            if (state.get("replace_reason") or foreign) and not state["busy"]:
                ray.kill(actor)
                continue
            attempt = state["attempt"] if state["busy"] else None
            marks = {"claimed": attempt is None, "foreign": foreign}
            self._slots[name] = PooledSlot(name, shape, node, actor, attempt, **marks, fence=self._fence)
        _dismiss(old)
        return ahead

    def nodes(self) -> Sequence[Node]:
        """The nodes of the cluster, at most a second old."""
        if time.monotonic() - self._refreshed > REFRESH_SECONDS:
            self._nodes = [node for node in alive_nodes() if short(node.uid) not in self._ending]
            self._refreshed = time.monotonic()
            present = {short(node.uid) for node in self._nodes}
            for idle in self._idle():
                if idle.node not in present:  # it was lost with its node
                    self.drop(idle)
        return self._nodes

    def holding(self, name: str, attempt: str) -> PooledSlot | None:
        slot = self._slots.get(name)
        if slot is None:
            return None
        try:
            state: dict[str, Any] = ray.get(slot.actor.describe.remote(), timeout=_ANSWER_SECONDS)
        except (RayActorError, ActorUnschedulableError, GetTimeoutError):
            self.lost(slot)
            return None
        if state["attempt"] != attempt:
            return None
        slot.attempt, slot.claimed = attempt, True
        return slot

    def exists(self, name: str) -> bool:
        return name in self._slots

    def take(self, order: Order) -> PooledSlot | None:
        """Assign a free or new slot of the order's shape, on a node with its data; `None` if there is none yet."""
        shape = shape_of(order.slot, self.nodes())
        late, lacking = self._late(), self._lacking(order)
        for idle in self._idle():
            if idle.node in late:
                self.drop(idle)
        slot = next((idle for idle in self._idle() if idle.shape == shape and idle.node not in lacking), None)
        if slot is None:
            slot = self._make(shape, late | lacking)
        if slot is not None:
            slot.attempt = order.attempt
        return slot

    def _lacking(self, order: Order) -> set[str]:
        """The nodes without the order's data; empty if no other node can train it, so that its training reports it."""
        others = [node for node in self.nodes() if node.uid not in order.lacking]
        return {short(uid) for uid in order.lacking} if possible(order.slot, others) else set()

    def full(self) -> bool:
        """Whether no order can be taken: all slots are in use, and no node has room for another."""
        late, nodes = self._late(), self.nodes()
        if self._crowded():
            return True
        expected = [slot for slot in self._expected if self.possible(slot)]
        shapes = [shape_of(slot, nodes) for slot in expected] or [_LEAST]
        if any(idle.node not in late and (not expected or idle.shape in shapes) for idle in self._idle()):
            return False
        return not any(self._room(shape, late) for shape in shapes)

    def rest(self, seconds: float = IDLE_SECONDS) -> None:
        """End the slot actors that have been idle for `seconds`."""
        for idle in self._idle():
            if time.monotonic() - idle.since >= seconds:
                self.drop(idle)

    def reports(self, seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with their last descriptions, for clients; `seen` has the recorded messages by attempt."""
        return [slot.report(seen) for slot in self._slots.values()]

    def training(self) -> list[Shape]:
        return [slot.shape for slot in self._busy()]

    def release(self, slot: PooledSlot) -> None:
        """Make a slot free after its attempt has ended; end it if it holds the code of another release."""
        if slot.foreign:
            self.replace(slot, "it holds the code of another release")
            return
        slot.attempt, slot.since = None, time.monotonic()

    def drop(self, slot: PooledSlot) -> None:
        """End a slot actor."""
        self._slots.pop(slot.name, None)
        ray.kill(slot.actor)

    def replace(self, slot: PooledSlot, reason: str) -> None:
        """End a slot actor between two trainings; the next order gets a new one."""
        if reason == REASON:
            self._ending.add(slot.node)
            self._refreshed = float("-inf")
        log.info("slot %s is replaced: %s", slot.name, reason)
        self.drop(slot)

    def lost(self, slot: PooledSlot) -> None:
        """End a slot actor that was lost, and the idle actors of its node, which may be gone as well.

        The nodes are read again before the next order is taken: if the head is dead, that fails, and no attempt is lost
        on an order that never begins.
        """
        self.drop(slot)
        self._refreshed = float("-inf")
        for idle in self._idle():
            if idle.node == slot.node:
                self.drop(idle)

    def unclaimed(self) -> bool:
        return any(not slot.claimed for slot in self._slots.values())

    def reap(self) -> None:
        """End attempts without an order, which were cancelled or superseded while no conductor lived."""
        for slot in list(self._slots.values()):
            if not slot.claimed:
                self.drop(slot)

    def _idle(self) -> list[PooledSlot]:
        return [slot for slot in self._slots.values() if slot.attempt is None]

    def _busy(self) -> list[PooledSlot]:
        return [slot for slot in self._slots.values() if slot.attempt is not None]

    def _late(self) -> set[str]:
        return {slot.node for slot in self._busy() if slot.late}

    def _room(self, shape: Shape, excluded: set[str]) -> Node | None:
        """The node, not `excluded`, that could hold another slot after its idle slots are ended, or `None`.

        For a shape without GPUs, nodes without GPUs come first; then the node with the most free CPUs.
        """
        busy = self._busy()
        found: list[tuple[bool, float, Node]] = []
        for node in self.nodes():
            held = _shapes_on(node, busy)
            if short(node.uid) not in excluded and holds(node, held, shape):
                free = node.resources.get("CPU", 0.0) - sum(other.cpus for other in held)
                found.append((bool(shape.gpus) or not node.resources.get("GPU"), free, node))
        return max(found, key=lambda ranked: ranked[:2])[2] if found else None

    def _make(self, shape: Shape, excluded: set[str]) -> PooledSlot | None:
        node = self._room(shape, excluded)
        if node is None or self._crowded():
            return None
        idle = sorted(self._idle(), key=lambda slot: slot.node != short(node.uid))  # those of this node first
        for slot in idle:
            if len(self._slots) < self._limit and holds(node, _shapes_on(node, self._slots.values()), shape):
                break
            self.drop(slot)
        name = _name_of(shape, node)
        made = ray.remote(SlotActor).options(
            name=name,
            namespace=self.namespace,
            lifetime="detached",
            max_concurrency=8,
            num_cpus=shape.cpus,
            num_gpus=shape.gpus,
            memory=shape.memory or None,
            resources=dict(shape.resources),
            # On the node whose resources were counted, not on one that Ray would choose.
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.uid, soft=False),
        )
        actor = made.remote(edition=self._edition)
        answer = actor.describe.remote()
        self._slots[name] = PooledSlot(name, shape, short(node.uid), actor, answer=answer, fence=self._fence)
        return self._slots[name]


def _read_name(name: str) -> tuple[Shape, str]:
    _, cpus, gpus, memory, _, node, custom = name.split(":", 6)
    resources = tuple((key, float(value)) for key, value in parse_qsl(custom))
    return Shape(float(cpus), float(gpus), int(float(memory)), resources), node


def _dismiss(actors: Sequence[tuple[ActorHandle, str | None]]) -> None:
    """Stop the trainings of these actors at their next step, and end the actors."""
    for actor, attempt in actors:
        actor.stop.remote(attempt)
    until = time.monotonic() + _ANSWER_SECONDS
    for actor, _ in actors:
        with contextlib.suppress(RayError):
            while time.monotonic() < until and ray.get(actor.describe.remote(), timeout=_ANSWER_SECONDS)["busy"]:
                time.sleep(0.1)
        ray.kill(actor)


def alive_nodes() -> list[Node]:
    """The nodes of the cluster that are alive, with their resources."""
    return [
        Node(
            uid=found["NodeID"],
            host=found.get("NodeManagerHostname") or "",
            resources={
                name: amount
                for name, amount in found["Resources"].items()
                # The placement groups of Tune appear as resources.
                if not name.startswith("node:") and name != "object_store_memory" and "_group_" not in name
            },
        )
        for found in ray.nodes()
        if found["Alive"]
    ]


def short(uid: str) -> str:
    """The first characters of a node's uid, which are unique in a cluster."""
    return uid[:12]


def _shapes_on(node: Node, slots: Iterable[PooledSlot]) -> list[Shape]:
    return [slot.shape for slot in slots if slot.node == short(node.uid)]


def _name_of(shape: Shape, node: Node) -> str:
    """The name of a new actor, from which the next conductor reads its shape and node."""
    custom = urlencode(shape.resources)
    size = f"{shape.cpus:.10g}:{shape.gpus:.10g}:{shape.memory}"
    return f"{PREFIX}:{size}:{uuid.uuid4().hex[:8]}:{short(node.uid)}:{custom}"
