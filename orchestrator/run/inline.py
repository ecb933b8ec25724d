"""The inline engine: trains in this process, one after the other; also the researcher's debugger."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from orchestrator.run.attempt import Workplace, execute, inspect, release, seen
from orchestrator.run.engine import Broker, Site, settle_from_spool
from orchestrator.run.slot import Meter
from orchestrator.run.spool import Message
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Inspected, Node, SlotReport
from orchestrator.views.runs import Failure, Order
from workers.catalog import Need

HOLDER: Final = "inline"


class Inline:
    """Executes each order where it stands."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._found: list[Inspected] = []
        self._attempt: str | None = None
        self._meter = Meter()

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none or the broker is closing."""
        while not broker.closing() and (order := broker.next_order()) is not None:
            if order.holder is not None:
                self._settle_lost(broker, order)
            else:
                self._execute(broker, order)
            broker.tick()

    def nodes(self) -> None:
        """Not known: here every slot is this process."""

    def slots(self) -> Sequence[SlotReport]:
        """This process, while it trains."""
        if self._attempt is None:
            return []
        here = socket.gethostname()
        return [SlotReport(HOLDER, HOLDER, here, {}, self._attempt, self._meter.usage())]

    def machines(self) -> Sequence[Node]:
        """This one."""
        return [Node(HOLDER, socket.gethostname(), {})] if self._workplace.inspect else []

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Look at once."""
        self._found += seen(machine, needs, lambda: inspect(self._workplace, needs))

    def inspected(self) -> Sequence[Inspected]:
        """What was found since this was asked last."""
        found, self._found = self._found, []
        return found

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Nobody hears it."""

    def rest(self, broker: Broker) -> None:
        """Nothing is ever left."""

    def leave(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""

    def _execute(self, broker: Broker, order: Order) -> None:
        broker.started(order, HOLDER, socket.gethostname())

        def tell(message: Message) -> None:
            # a stop that the broker's closing caused leaves the attempt open: the next conductor resumes it
            if message.kind == "stopped" and broker.wanted(order):
                return
            broker.told(order, message)
            broker.tick()

        self._attempt = order.attempt
        try:
            execute(order, self._workplace, lambda: broker.closing() or not broker.wanted(order), tell)
        finally:
            self._attempt = None
        with suppress(RuntimeError):  # a GPU that has failed: the next training on it will say so
            release(self._workplace.train)

    def _settle_lost(self, broker: Broker, order: Order) -> None:
        failure = Failure("infrastructure", "the process that trained it ended") if order.holder else None
        settle_from_spool(broker, order, self._workplace, order.seen, failure)


def engine(site: Site) -> Inline:
    """The engine `inline`."""
    return Inline(site.workplace)
