"""The slots of a cluster: makes, finds, hands out and ends detached slot actors."""

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
from orchestrator.run.engine import Broker
from orchestrator.run.slot import FORM, REASON, SlotActor
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Node, ProcessUsage, Shape, SlotReport, holds, possible, shape_of
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)

NAMESPACE: Final = "metricsweep"
PREFIX: Final = "slot"
LATE_SECONDS: Final = 30.0
"""An actor that has not begun by then waits for room, which nothing else on its node may take before it."""
ANSWER_SECONDS: Final = 20.0
"""A live actor answers `describe` in milliseconds; one that takes this long is treated as gone."""
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
    foreign: bool = False  # it holds the code of another release
    fence: int = 0  # the lease's, under which its conductor gives it orders
    since: float = field(default_factory=time.monotonic)  # when it was made, and later when it was given back

    def start(self, order: Order, workplace: Workplace) -> None:
        """Have it train an order."""
        self.actor.start.remote(order, workplace, self.fence)

    def stop(self, attempt: str) -> None:
        """Ask it to stop an attempt at its next step."""
        self.actor.stop.remote(attempt)

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


@dataclass(slots=True)
class _Asked:
    """One slot's last answer, and the one that is awaited."""

    awaited: Any = None
    at: float = 0.0
    told: Mapping[str, Any] = field(default_factory=dict)
    lag: float | None = None


class SlotReports:
    """An answer that does not come, or an error in place of it, leaves what was said last: others find dead slots."""

    def __init__(self) -> None:
        self._asked: dict[str, _Asked] = {}

    def look(self, slots: Iterable[HeldSlot], seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with what they said last; `seen` is by attempt how many of its messages are recorded."""
        slots = list(slots)
        self._asked = {slot.name: self._asked.get(slot.name, _Asked()) for slot in slots}
        return [self._looked(slot, self._asked[slot.name], seen) for slot in slots]

    def _looked(self, slot: HeldSlot, asked: _Asked, seen: Mapping[str, int]) -> SlotReport:
        if asked.awaited is not None and ray.wait([asked.awaited], timeout=0)[0]:
            try:
                asked.told = ray.get(asked.awaited)
                asked.lag = _lag(asked.told, seen, time.monotonic() - asked.at)
            except RayError:
                asked.lag = None
            asked.awaited = None
        if asked.awaited is None and slot.begun:
            asked.awaited, asked.at = slot.actor.describe.remote(), time.monotonic()
        usage = asked.told.get("usage")
        return SlotReport(
            name=slot.name,
            node=slot.node,
            host=asked.told.get("host", ""),
            resources=slot.shape.bundle,
            attempt=slot.attempt,
            usage=None if usage is None else ProcessUsage.model_validate(usage),
            lag=asked.lag if slot.attempt is not None else None,
        )


class SlotPool:
    """The slots that this conductor may use; it makes one when there is room and ends idle ones of another shape.

    They live in a namespace of the installation: another one on the same cluster must not end them as nobody's. Each is
    greeted with the lease's fence, and from then on obeys no conductor that held the lease before.
    """

    def __init__(self, broker: Broker, limit: int | None, edition: str = "") -> None:
        """Raises FencedError where the broker's lease is another's by now."""
        self._limit, self._fence, self._edition = limit, broker.fence(), edition
        self.namespace = f"{NAMESPACE}-{broker.installation()}"
        self._slots: dict[str, HeldSlot] = {}
        self._reports = SlotReports()
        self._nodes: list[Node] = []
        self._looked = float("-inf")
        self._expected: list[Slot] = []
        self._ending: set[str] = set()  # the nodes that have told their slots that they end
        self.replaced = 0  # slots that had grown too large
        ahead = self._adopt()
        if ahead:
            broker.installation()  # is written under the lease: if that is ours, the database is an older copy
            for actor in ahead:
                ray.kill(actor)

    def _adopt(self) -> list[ActorHandle]:
        """Take over the actors that an earlier conductor left; those that do not answer are ended.

        One of a release that spoke in another form is asked to stop first: its training goes on from there. Those that
        have seen a later lease than ours are given back, and are not taken over.
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
                continue  # it ended meanwhile
            try:
                state = ray.get(actor.describe.remote(), timeout=ANSWER_SECONDS)
                if state.get("form") != FORM:
                    old.append((actor, state["attempt"]))
                    continue
                state = ray.get(actor.greet.remote(self._fence), timeout=ANSWER_SECONDS)
            except (RayActorError, ActorUnschedulableError, GetTimeoutError):
                ray.kill(actor)  # else its training might go on beside the attempt that replaces it
                continue
            if state["fence"] > self._fence:
                ahead.append(actor)
                continue
            shape, node = read_name(name)
            if state.get("worn") == REASON:
                self._ending.add(node)
            foreign = state.get("edition", "") != self._edition
            if (state.get("worn") or foreign) and not state["busy"]:
                ray.kill(actor)
                continue
            attempt = state["attempt"] if state["busy"] else None
            marks = {"claimed": attempt is None, "foreign": foreign}
            self._slots[name] = HeldSlot(name, shape, node, actor, attempt, **marks, fence=self._fence)
        _dismiss(old)
        return ahead

    def nodes(self) -> Sequence[Node]:
        """The nodes that are there now, as of a second ago at most."""
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._nodes = [node for node in alive_nodes() if short(node.uid) not in self._ending]
            self._looked = time.monotonic()
            there = {short(node.uid) for node in self._nodes}
            for idle in self._idle():
                if idle.node not in there:  # it went with its node: whoever took it would lose an attempt
                    self.drop(idle)
        return self._nodes

    def holding(self, name: str, attempt: str) -> HeldSlot | None:
        """The slot of that name if it trains, or has just trained, this attempt."""
        slot = self._slots.get(name)
        if slot is None:
            return None
        try:
            state: dict[str, Any] = ray.get(slot.actor.describe.remote(), timeout=ANSWER_SECONDS)
        except (RayActorError, ActorUnschedulableError, GetTimeoutError):
            self.lost(slot)
            return None
        if state["attempt"] != attempt:
            return None
        slot.attempt, slot.claimed = attempt, True
        return slot

    def there(self, name: str) -> bool:
        """Whether there is a slot of that name."""
        return name in self._slots

    def take(self, order: Order) -> HeldSlot | None:
        """A free slot of the order's shape, where its data are, now the order's; none: wait until one is given back."""
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

    def possible(self, slot: Slot) -> bool:
        """Whether a node that is there could hold such a slot, were it empty."""
        return possible(slot, self.nodes())

    def _lacking(self, order: Order) -> set[str]:
        """The nodes without the order's data; none where no other can hold its slot: then its training says so."""
        others = [node for node in self.nodes() if node.uid not in order.lacking]
        return {short(uid) for uid in order.lacking} if possible(order.slot, others) else set()

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

    def rest(self, seconds: float = IDLE_SECONDS) -> None:
        """End the actors that nothing has used for so long; their room is not ours while nobody conducts."""
        for idle in self._idle():
            if time.monotonic() - idle.since >= seconds:
                self.drop(idle)

    def look(self, seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with what each said of itself last; `seen` is by attempt how many messages are recorded."""
        return self._reports.look(self._slots.values(), seen)

    def training(self) -> list[Shape]:
        """The shapes of the slots that train."""
        return [slot.shape for slot in self._busy()]

    def release(self, slot: HeldSlot) -> None:
        """Give a slot back; one of another release has trained its last."""
        if slot.foreign:
            self.replace(slot, "it holds the code of another release")
            return
        slot.attempt, slot.since = None, time.monotonic()

    def drop(self, slot: HeldSlot) -> None:
        """End an actor that is dead, stuck or of a shape that nobody waits for."""
        self._slots.pop(slot.name, None)
        ray.kill(slot.actor)

    def replace(self, slot: HeldSlot, reason: str) -> None:
        """End an actor between two trainings, for good reason; whoever needs one next gets a new one."""
        self.replaced += 1
        if reason == REASON:
            self._ending.add(slot.node)
            self._looked = float("-inf")
        log.info("slot %s is replaced: %s (%d replaced so far)", slot.name, reason, self.replaced)
        self.drop(slot)

    def lost(self, slot: HeldSlot) -> None:
        """End an actor that was lost, and the idle actors of its node, which may be gone before Ray knows.

        Ray is asked for the nodes anew before the next order is taken: a dead head does not answer, and an order that
        is claimed meanwhile would cost its training an attempt that never begins.
        """
        self.drop(slot)
        self._looked = float("-inf")
        for idle in self._idle():
            if idle.node == slot.node:
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

    def _room(self, shape: Shape, barred: set[str]) -> Node | None:
        """The node, none of the `barred`, that could hold one more, were its idle slots ended: one without GPUs where
        none is asked for, then the one with the most CPUs free."""
        busy = self._busy()
        found: list[tuple[bool, float, Node]] = []
        for node in self.nodes():
            held = _shapes_on(node, busy)
            if short(node.uid) not in barred and holds(node, held, shape):
                free = node.resources.get("CPU", 0.0) - sum(one.cpus for one in held)
                found.append((bool(shape.gpus) or not node.resources.get("GPU"), free, node))
        return max(found, key=lambda one: one[:2])[2] if found else None

    def _make(self, shape: Shape, barred: set[str]) -> HeldSlot | None:
        node = self._room(shape, barred)
        if node is None or (self._limit is not None and len(self._busy()) >= self._limit):
            return None
        idle = sorted(self._idle(), key=lambda slot: slot.node != short(node.uid))  # those in the way first
        for slot in idle:
            crowded = self._limit is not None and len(self._slots) >= self._limit
            if not crowded and holds(node, _shapes_on(node, self._slots.values()), shape):
                break
            self.drop(slot)
        name = name_of(shape, node)
        options: dict[str, Any] = {"num_cpus": shape.cpus, "num_gpus": shape.gpus, "max_concurrency": 8}
        if shape.memory:
            options["memory"] = shape.memory
        if shape.resources:
            options["resources"] = dict(shape.resources)
        # The pool counts by node: Ray's own choice of another one would leave the room that was counted on.
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node.uid, soft=False)
        named = {"name": name, "namespace": self.namespace, "lifetime": "detached"}
        actor = ray.remote(SlotActor).options(**named, **options).remote(edition=self._edition)
        answer = actor.describe.remote()
        self._slots[name] = HeldSlot(name, shape, short(node.uid), actor, answer=answer, fence=self._fence)
        return self._slots[name]


def alive_nodes() -> list[Node]:
    """The nodes of the cluster that are there, with what they offer by name."""
    return [
        Node(
            uid=found["NodeID"],
            host=found.get("NodeManagerHostname") or "",
            resources={
                name: amount
                for name, amount in found["Resources"].items()
                # Tune's placement groups come and go as resources of their own.
                if not name.startswith("node:") and name != "object_store_memory" and "_group_" not in name
            },
        )
        for found in ray.nodes()
        if found["Alive"]
    ]


def short(uid: str) -> str:
    """The first characters of a node's uid, which tell the nodes of a cluster apart."""
    return uid[:12]


def name_of(shape: Shape, node: Node) -> str:
    """A new actor's name, by which the next conductor knows what it holds and where."""
    custom = urlencode(shape.resources)
    size = f"{shape.cpus:.10g}:{shape.gpus:.10g}:{shape.memory}"
    return f"{PREFIX}:{size}:{uuid.uuid4().hex[:8]}:{short(node.uid)}:{custom}"


def read_name(name: str) -> tuple[Shape, str]:
    """The shape and the node that a name tells."""
    _, cpus, gpus, memory, _, node, custom = name.split(":", 6)
    resources = tuple((key, float(value)) for key, value in parse_qsl(custom))
    return Shape(float(cpus), float(gpus), int(float(memory)), resources), node


def _lag(told: Mapping[str, Any], seen: Mapping[str, int], since: float) -> float | None:
    """How long the oldest message that is not recorded has waited; none: all are."""
    recorded, ages = seen.get(told["attempt"] or ""), told.get("ages") or []
    if recorded is None or recorded >= told.get("said", 0):
        return None
    first = told["said"] - len(ages)  # messages count from 1, and the first of `ages` is number `first` + 1
    return float(ages[max(0, recorded - first)]) + since


def _dismiss(actors: Sequence[tuple[ActorHandle, str | None]]) -> None:
    """Stop what these actors train, at its next step, and end them."""
    for actor, attempt in actors:
        actor.stop.remote(attempt)
    until = time.monotonic() + ANSWER_SECONDS
    for actor, _ in actors:
        with contextlib.suppress(RayError):
            while time.monotonic() < until and ray.get(actor.describe.remote(), timeout=ANSWER_SECONDS)["busy"]:
                time.sleep(0.1)
        ray.kill(actor)


def _shapes_on(node: Node, slots: Iterable[HeldSlot]) -> list[Shape]:
    return [slot.shape for slot in slots if slot.node == short(node.uid)]
