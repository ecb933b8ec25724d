"""A cluster in place of Ray: slot actors that outlive their conductor, train in the world's time and can be lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ray.exceptions import RayActorError

from orchestrator.run.attempt import Workplace, execute
from orchestrator.run.slot import MOST_AGES, PROTOCOL
from orchestrator.run.spool import Message, attempt_folder
from orchestrator.views.operations import Node
from orchestrator.views.runs import Order
from tests.simulation.world import BrokenWorldError, Process, World


@dataclass
class Ref:
    """A pending answer: it is computed when a caller waits for it."""

    answer: Callable[[], Any]


@dataclass(eq=False)
class Actor:
    """A slot's process; `lost` once Ray has ended it, which a network that is torn may hide from the process."""

    name: str
    namespace: str
    node: str
    cpus: float
    edition: str
    process: Process
    attempt: str | None = None
    order: Order | None = None
    messages: list[Message] = field(default_factory=list)
    asked: Event = field(default_factory=Event)
    fence: int = 0
    lost: bool = False

    @property
    def busy(self) -> bool:
        """Whether an attempt has not ended."""
        return self.attempt is not None and not (self.messages and self.messages[-1].final)


class Handle:
    """What a conductor has of an actor: each method's `remote` gives a reference."""

    def __init__(self, cluster: "Cluster", actor: Actor) -> None:
        self._cluster, self.actor = cluster, actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, f"actor_{name}")

        def remote(*given: Any) -> Ref:
            if self.actor.lost or not self.actor.process.alive:
                return Ref(self._dead)
            answer = method(self.actor, *given)  # at once; who waits for it later has it, whatever became of the actor
            return Ref(lambda: answer)

        return SimpleNamespace(remote=remote)

    def _dead(self) -> Any:
        raise RayActorError


class Cluster:
    """The nodes, and the actors on them; a stand-in for the module `ray` as pool and slots use it."""

    def __init__(self, world: World, nodes: Sequence[Node]) -> None:
        self.world, self.there = world, list(nodes)
        self.actors: dict[str, Actor] = {}
        self.torn = 0.0  # the chance that an ended slot goes on for a while, out of reach
        self.unheard: set[str] = set()  # trainings that went on in a slot which was given up
        self.results: Counter[str] = Counter()  # by training, those of slots that nobody had given up
        self.writers: dict[str, str] = {}  # by the folder of an attempt: the slot that writes its spool
        self.begun: set[str] = set()  # attempts
        self._made_so_far = 0

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Have pool and slots of this process find this cluster."""
        with ExitStack() as stand_ins:
            for name, stand_in in (
                ("ray", self), ("list_named_actors", self.named), ("alive_nodes", lambda: list(self.there)),
            ):  # fmt: skip
                stand_ins.enter_context(patch(f"orchestrator.run.ray.pool.{name}", stand_in))
            yield

    def named(self, all_namespaces: bool) -> list[dict[str, str]]:
        """`ray.util.list_named_actors`."""
        return [{"name": one.name, "namespace": one.namespace} for one in self.actors.values()]

    def get_actor(self, name: str, namespace: str) -> Handle:
        """`ray.get_actor`."""
        actor = self.actors.get(name)
        if actor is None or actor.namespace != namespace:
            raise ValueError(f"no actor {name}")
        return Handle(self, actor)

    def get(self, ref: Ref, timeout: float | None = None) -> Any:
        """`ray.get`."""
        return ref.answer()

    def wait(self, refs: Sequence[Ref], timeout: float | None = None) -> tuple[list[Ref], list[Ref]]:
        """`ray.wait`: every answer is there at once."""
        return list(refs), []

    def remote(self, of: type) -> Any:
        """`ray.remote(SlotActor).options(...).remote(...)`."""

        def options(**given: Any) -> Any:
            return SimpleNamespace(remote=lambda edition: self._made(given, edition))

        return SimpleNamespace(options=options)

    def _made(self, options: dict[str, Any], edition: str) -> Handle:
        node = options["scheduling_strategy"].node_id
        held = sum(one.cpus for one in self.actors.values() if one.node == node)
        offered = next((one.resources["CPU"] for one in self.there if one.uid == node), 0.0)
        if held + options["num_cpus"] > offered:
            raise BrokenWorldError(f"node {node} has {offered:g} CPUs, and {held:g} of them are held")
        self._made_so_far += 1
        process = Process(f"slot {self._made_so_far}")
        actor = Actor(options["name"], options["namespace"], node, options["num_cpus"], edition, process)
        self.actors[actor.name] = actor
        process.farewell.append(lambda: self._gone(actor))
        return Handle(self, actor)

    def kill(self, handle: Handle) -> None:
        """`ray.kill`: its process ends, or later, where the network is torn."""
        actor = handle.actor
        self._gone(actor)
        if not actor.process.alive:
            return
        if actor.busy and self.world.chance(self.torn):
            self.world.fault("slots that train on", f"{actor.process.name} is ended, and does not hear of it")
            self.unheard.add(actor.order.training if actor.order else "")
            self.world.freeze(actor.process, self.world.drawn.choice([2.0, 8.0, 20.0]))
            return
        self.world.kill(actor.process, "by its conductor" if actor.busy else "for it is idle")

    def _gone(self, actor: Actor) -> None:
        actor.lost = True
        self.actors.pop(actor.name, None)

    def lose(self, actor: Actor) -> None:
        """A slot's process dies by itself."""
        self._gone(actor)
        self.world.kill(actor.process, "out of the blue")

    def actor_describe(self, actor: Actor) -> dict[str, Any]:
        """What a slot says of itself."""
        message_ages = [0.0] * min(MOST_AGES, len(actor.messages))
        told = {
            "protocol": PROTOCOL,
            "fence": actor.fence,
            "edition": actor.edition,
            "host": actor.node,
            "replace_reason": None,
        }
        return {
            **told,
            "attempt": actor.attempt,
            "busy": actor.busy,
            "message_count": len(actor.messages),
            "message_ages": message_ages,
        }

    def actor_greet(self, actor: Actor, fence: int) -> dict[str, Any]:
        """Obey nobody with a lower fence."""
        actor.fence = max(actor.fence, fence)
        return self.actor_describe(actor)

    def actor_stop(self, actor: Actor, attempt: str) -> None:
        """Ask an attempt to stop."""
        if actor.attempt == attempt:
            actor.asked.set()

    def actor_start(self, actor: Actor, order: Order, workplace: Workplace, fence: int) -> bool:
        """Begin an attempt; the same one again changes nothing."""
        if fence < actor.fence:
            self.world.tell(f"{actor.process.name} refuses {order.label}, attempt {order.number}, of an old lease")
            return False
        actor.fence = fence
        if actor.attempt == order.attempt:
            return True
        if actor.busy:
            return False
        for other in self.actors.values():
            if other.busy and other.order is not None and other.order.training == order.training:
                raise BrokenWorldError(
                    f"{order.label} trains in {other.process.name} and in {actor.process.name} at once"
                )
        writer = self.writers.setdefault(attempt_folder(order), actor.process.name)
        if order.attempt in self.begun or writer != actor.process.name:
            raise BrokenWorldError(
                f"{order.label}, attempt {order.number}, begins in {actor.process.name}, and has begun in {writer}"
            )
        self.begun.add(order.attempt)
        actor.attempt, actor.order, actor.messages, actor.asked = order.attempt, order, [], Event()
        self.world.tell(f"{actor.process.name} begins {order.label}, attempt {order.number}")
        asked, messages = actor.asked, actor.messages

        def train() -> None:
            execute(order, workplace, asked.is_set, messages.append)
            if messages[-1].kind == "finished" and not actor.lost:
                self.results[order.training] += 1

        self.world.begin(actor.process, "", train)
        return True

    def poll(self, actor: Actor, attempt: str, seen: int) -> list[bytes]:
        """The lines of an attempt's messages after number `seen`."""
        return [message.line for message in actor.messages[seen:]] if actor.attempt == attempt else []
