"""The protocol between a conductor and what executes trainings, and the engines by name."""

import importlib
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from orchestrator.host.storage import opened
from orchestrator.run import spool
from orchestrator.run.attempt import Workplace
from orchestrator.run.spool import Message
from orchestrator.settings import ENGINES
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import NotFoundError, UnavailableError
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


def engine_named(name: str, site: Site) -> Engine:
    """The engine that a factory of this name makes; NotFoundError says what is wrong with the name.

    Its module is imported only here, since Ray takes seconds.
    """
    module, _, factory = ENGINES.get(name, name).partition(":")
    try:
        make = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError, ValueError) as error:
        short = " and ".join(f"`{one}`" for one in ENGINES)
        raise NotFoundError(
            f"METRICSWEEP_ENGINE: no engine {name!r}: {error}; expected `module:factory`; {short} come with metricsweep"
        ) from error
    made = make(site)
    if isinstance(made, Engine):
        return made
    lacking = [one for one in _asked() if not callable(getattr(made, one, None))]
    raise NotFoundError(f"METRICSWEEP_ENGINE: {name!r} gives no engine: it has no `{'`, no `'.join(lacking)}`")


def _asked() -> list[str]:
    """What an engine must have."""
    return sorted(one for one in vars(Engine) if not one.startswith("_"))


UNBEGUN: Final = "claimed by a conductor that ended before it had begun"


def settle_from_spool(broker: Broker, order: Order, workplace: Workplace, seen: int, failure: Failure | None) -> None:
    """End an order whose holder is gone: by the end that it spooled, else by the failure, or as stopped if unwanted.

    Without a failure it is not known to have begun: if nothing is spooled its training waits again, as another attempt,
    since two slots that train the same one would write one spool. Raises UnavailableError where the storage does not
    answer: the order is then nobody's, and is settled later.
    """
    try:
        messages = list(spool.read(opened(workplace.storage), spool.attempt_folder(order), seen))
    except OSError as error:
        raise UnavailableError(f"the storage does not answer: {error}") from error
    for message in messages:
        if message.kind == "stopped" and broker.wanted(order):
            broker.returned(order, "given back by its slot while nobody conducted")
            return
        broker.told(order, message)
        if message.final:
            return
    if failure is None and not messages and seen == 0:
        broker.returned(order, UNBEGUN)
        return
    if not broker.wanted(order):
        broker.stopped(order)
        return
    failure = failure or Failure("infrastructure", "its slot is gone")
    broker.failed(order, replace(failure, begun=True) if messages else failure)  # who has spooled had begun


class Pruner(Protocol):
    """One competition: what it is told in the same order gives the same decisions."""

    def report(self, candidate: int, number: int, value: float) -> None:
        """Evaluation `number` (1, 2, 3 ...) of a candidate's training; NaN where it was not a number."""

    def decision(self, candidate: int) -> str | None:
        """Why the candidate is to be pruned at its latest evaluation, with numbers; none: it goes on."""

    def finish(self, candidate: int, score: float) -> None:
        """The candidate's training ended well, with this score."""


Values = Mapping[str, str | float]
"""By axis: the label of an alternative, or the number drawn from a range."""


class Study(Protocol):
    """The search within one cell: the same questions and answers in the same order give the same suggestions."""

    def ask(self, recorded: Values | None = None) -> tuple[int, Values] | None:
        """The next suggestion, or a recorded one, and its number from 0; none when nothing is left to suggest."""

    def tell(self, number: int, score: float | None, pruned: int | None = None) -> None:
        """The score of a suggestion; none when it failed, diverged or was cancelled.

        One that was pruned after evaluation `pruned` has what it had there; none where that was not a number.
        """

    def learn(self, values: Values, score: float | None, pruned: int | None = None) -> None:
        """Take up a recorded suggestion with its score, where asking anew does not give the same."""
