"""A slot that a pool holds: its actor, and the name that tells its shape and its node."""

import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnschedulableError, GetTimeoutError, RayActorError, RayError

from orchestrator.run.attempt import Workplace
from orchestrator.views.nodes import Node
from orchestrator.views.orders import Order
from orchestrator.views.resources import Shape

PREFIX: Final = "slot"
LATE_SECONDS: Final = 30.0
"""An actor that has not begun by then waits for room, which nothing else on its node may take before it."""


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
