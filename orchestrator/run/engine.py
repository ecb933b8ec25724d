"""The interfaces between the conductor and an engine, which executes trainings; and the engines by name."""

import pkgutil
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from orchestrator.host.storage import opened
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.spool import Message
from orchestrator.settings import ENGINES
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import NotFoundError, UnavailableError
from orchestrator.views.operations import Inspected, Node, SlotReport
from orchestrator.views.runs import Failure, Order
from workers.catalog import Need


class Broker(Protocol):
    """The conductor as engines see it: it gives out orders and records their messages. Called from one thread."""

    def installation(self) -> str:
        """The name of the installation, unique in a cluster and the same for each of its conductors."""

    def fence(self) -> int:
        """The fencing number of the conductor's lease, by which slots refuse orders of earlier conductors."""

    def tick(self) -> None:
        """Apply requests and expand queued sweeps; cheap enough for every turn of an engine's loop."""

    def next_order(self) -> Order | None:
        """Claim the next waiting training, first those that an earlier conductor left running."""

    def started(self, order: Order, holder: str, host: str) -> None:
        """Record that an order runs on the slot `holder` of the machine `host`."""

    def record(self, order: Order, message: Message) -> None:
        """Record a message of the order's spool; idempotent. The last message ends the order."""

    def failed(self, order: Order, failure: Failure) -> None:
        """Record that an order ended without a result; the broker decides whether its training is tried again."""

    def stopped(self, order: Order) -> None:
        """Record that an order stopped because no sweep needs it any more."""

    def returned(self, order: Order, reason: str) -> None:
        """Record that an order did not begin or was preempted; its training waits again, to be continued."""

    def outranked(self, order: Order) -> bool:
        """Whether an order that has not begun must give way to a training of higher priority."""

    def needed(self, order: Order) -> bool:
        """Whether a sweep still needs the training of an order."""

    def needed_of(self, orders: Collection[Order]) -> Set[str]:
        """The attempts of those orders whose training a sweep still needs."""

    def closing(self) -> bool:
        """Whether the conductor is about to end; then `run` returns soon and leaves running slots alone."""


@dataclass(frozen=True, slots=True)
class Site:
    """What an engine's factory gets from the installation: settings, folders and addresses."""

    workplace: Workplace
    scratch: Path  # a folder of the home for the engine's files; it may not exist yet
    address: str | None = None  # METRICSWEEP_RAY_ADDRESS
    slots: int | None = None  # METRICSWEEP_SLOTS: most trainings at once


@runtime_checkable
class Engine(Protocol):
    """The interface of an engine, which executes orders on slots."""

    def run(self, broker: Broker) -> None:
        """Execute orders until none waits or runs, or the broker is closing."""

    def nodes(self) -> Sequence[Node] | None:
        """The nodes of the cluster now; `None` if they are not known, or do not matter to this engine."""

    def slots(self) -> Sequence[SlotReport]:
        """The slots that exist now, with what each trains and the resources it uses, if known."""

    def machines(self) -> Sequence[Node]:
        """The nodes that train now, and whose data folders can be inspected."""

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Begin to inspect the data sets in a machine's data folder; `inspected` returns the results."""

    def inspected(self) -> Sequence[Inspected]:
        """The inspection results since the last call; `unknown` if an inspection failed or took too long."""

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Report to the cluster which slots trainings wait for, so that it can add nodes."""

    def rest(self, broker: Broker) -> None:
        """Release slots that an earlier conductor left; called while no order runs."""

    def leave(self) -> None:
        """End idle slots, before `close`, while the lease is held."""

    def close(self) -> None:
        """Disconnect from the cluster; running slots continue, and the next conductor adopts them."""


def engine_named(name: str, site: Site) -> Engine:
    """Make the engine of a name or of `module:factory`; raises NotFoundError."""
    try:
        make = pkgutil.resolve_name(ENGINES.get(name, name))  # importing Ray takes seconds
    except (ImportError, AttributeError, ValueError) as error:
        short = " and ".join(f"`{one}`" for one in ENGINES)
        raise NotFoundError(
            f"METRICSWEEP_ENGINE: no engine {name!r}: {error}; expected `module:factory`; {short} come with metricsweep"
        ) from error
    made = make(site)
    if isinstance(made, Engine):
        return made
    methods = sorted(method for method in vars(Engine) if not method.startswith("_"))
    lacking = [method for method in methods if not callable(getattr(made, method, None))]
    raise NotFoundError(
        f"METRICSWEEP_ENGINE: what {name!r} makes is not an engine: it has no `{'`, no `'.join(lacking)}`"
    )


def settle_from_spool(broker: Broker, order: Order, workplace: Workplace, seen: int, failure: Failure | None) -> None:
    """End an order whose slot is gone: by the last message of its spool, else by `failure`.

    `failure` is `None` if the order may not have begun: if its spool is empty, its training waits for another attempt,
    since two slots with the same attempt would write one spool. Raises UnavailableError if the storage does not answer;
    then the order is settled later.
    """
    try:
        messages = list(spool.read(opened(workplace.storage), spool.attempt_folder(order), seen))
    except OSError as error:
        raise UnavailableError(f"the storage does not answer: {error}") from error
    for message in messages:
        if message.kind == "stopped" and broker.needed(order):
            broker.returned(order, "returned by its slot while no conductor ran")
            return
        broker.record(order, message)
        if message.final:
            return
    if failure is None and not messages and seen == 0:
        broker.returned(order, "claimed by a conductor that ended before the attempt began")
        return
    if not broker.needed(order):
        broker.stopped(order)
        return
    failure = failure or Failure("infrastructure", "its slot is gone")
    broker.failed(order, replace(failure, begun=True) if messages else failure)


Values = Mapping[str, str | float]  # by axis: the label of an alternative, or the number drawn from a range
