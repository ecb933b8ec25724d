"""The protocol between a conductor and what executes trainings; every engine passes one conformance suite."""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from orchestrator.run.attempt import Workplace
from orchestrator.run.message import Message
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Inspected, Node, SlotReport
from orchestrator.views.runs import Failure, Order
from workers.catalog import Need


class Broker(Protocol):
    """The conductor's side: gives out orders and takes what comes of them. Called from one thread only."""

    def installation(self) -> str:
        """A name that no other installation on the same cluster has, and that a next conductor has too."""

    def fence(self) -> int:
        """The lease's number, which grows with each conductor: by it slots know a former one's orders."""

    def tick(self) -> None:
        """Apply requests and expand queued sweeps; cheap enough to be called at every turn."""

    def next_order(self) -> Order | None:
        """Claim the next waiting training, first those that an earlier conductor left running; none: nothing waits."""

    def started(self, order: Order, holder: str, host: str) -> None:
        """The order runs on slot `holder` of machine `host`."""

    def told(self, order: Order, message: Message) -> None:
        """What the order's training said, as it stands in the spool; a repeated message changes nothing.

        The last one ends the order: with a result, with a failure, or because it was stopped.
        """

    def failed(self, order: Order, failure: Failure) -> None:
        """The order ended without a result; the broker decides whether its training is tried again."""

    def stopped(self, order: Order) -> None:
        """The order stopped because it was no longer wanted."""

    def returned(self, order: Order, reason: str) -> None:
        """The order was not begun, or was given back: its training waits again, to go on from its last checkpoint."""

    def outranked(self, order: Order) -> bool:
        """Whether, before the order has begun, another of a higher priority waits, or only paused sweeps want it."""

    def wanted(self, order: Order) -> bool:
        """False once everybody who wanted the training cancelled it."""

    def wanted_of(self, orders: Collection[Order]) -> Set[str]:
        """The same of several, asked at once: the attempts of those that are wanted."""

    def closing(self) -> bool:
        """True once the conductor is asked to end: return soon and leave running slots alone."""


@dataclass(frozen=True, slots=True)
class Site:
    """What an installation gives its engine: a factory of engines takes one."""

    workplace: Workplace
    scratch: Path
    """A folder of the home for files of the engine's own; it may not exist yet."""
    address: str | None = None
    """METRICSWEEP_RAY_ADDRESS."""
    slots: int | None = None
    """METRICSWEEP_SLOTS: most trainings at once."""


@runtime_checkable
class Engine(Protocol):
    """Executes orders. `run` returns when the broker has none left and none runs, or when the broker is closing."""

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none."""

    def nodes(self) -> Sequence[Node] | None:
        """The nodes that are there now; none: not known, or that does not matter here."""

    def slots(self) -> Sequence[SlotReport]:
        """The slots that there are now, with what each trains and what its process takes, as far as that is known."""

    def machines(self) -> Sequence[Node]:
        """The nodes that train and whose data roots can be looked at now."""

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Have a machine inspect what its data root has of some needs; what it finds comes by `inspected`."""

    def inspected(self) -> Sequence[Inspected]:
        """What machines have found since this was asked last; an inspection that failed, or took long, found that it is
        `unknown`."""

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Tell the cluster which slots trainings wait for, beside those that train, so that it can make nodes."""

    def rest(self, broker: Broker) -> None:
        """Called while there is nothing to run: give back what an earlier conductor left."""

    def leave(self) -> None:
        """Before `close`, by who holds the lease: end what holds resources and does nothing."""

    def close(self) -> None:
        """Release what is held; running slots live on and are adopted by the next conductor."""
