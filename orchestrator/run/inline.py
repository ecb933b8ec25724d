"""The engine `inline`: trains in this process, one training after another, where a debugger can follow."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from orchestrator.run.attempt import Workplace, execute, inspect, inspection, release
from orchestrator.run.engine import Broker, Engine, Site, settle_from_spool
from orchestrator.run.slot import Meter
from orchestrator.run.spool import Message
from orchestrator.spec.spec import Slot
from orchestrator.views.operations import Inspected, Node, SlotReport
from orchestrator.views.runs import Failure, Order
from workers.catalog import Need

_HOLDER: Final = "inline"


class Inline(Engine):
    """Executes each order in this process, one after another."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._found: list[Inspected] = []
        self._attempt: str | None = None
        self._meter = Meter()

    def run(self, broker: Broker) -> None:
        while not broker.closing() and (order := broker.next_order()) is not None:
            if order.holder is None:
                self._execute(broker, order)
            else:
                failure = Failure("infrastructure", "the process that trained it ended") if order.holder else None
                settle_from_spool(broker, order, self._workplace, order.seen, failure)
            broker.tick()

    def nodes(self) -> None:
        """`None`: this process is the only slot, and no nodes are known."""

    def slots(self) -> Sequence[SlotReport]:
        """This process as a slot, while it trains."""
        if self._attempt is None:
            return []
        return [SlotReport(_HOLDER, _HOLDER, socket.gethostname(), {}, self._attempt, self._meter.usage())]

    def machines(self) -> Sequence[Node]:
        """This machine as the only node."""
        return [Node(_HOLDER, socket.gethostname(), {})] if self._workplace.inspect else []

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Inspect the data sets in the data folder of this machine now."""
        self._found += inspection(machine, needs, lambda: inspect(self._workplace, needs))

    def inspected(self) -> Sequence[Inspected]:
        found, self._found = self._found, []
        return found

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Do nothing: there is no cluster."""

    def rest(self, broker: Broker) -> None:
        """Do nothing: no slot outlives its conductor."""

    def leave(self) -> None:
        """Do nothing: there are no idle slots."""

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _execute(self, broker: Broker, order: Order) -> None:
        broker.started(order, _HOLDER, socket.gethostname())

        def deliver(message: Message) -> None:
            # If the attempt was stopped because the broker is closing, the next conductor resumes it.
            if message.kind == "stopped" and broker.needed(order):
                return
            broker.record(order, message)
            broker.tick()

        self._attempt = order.attempt
        try:
            execute(order, self._workplace, lambda: broker.closing() or not broker.needed(order), deliver)
        finally:
            self._attempt = None
        with suppress(RuntimeError):  # the next training will report a failed GPU
            release(self._workplace.train)


def engine(site: Site) -> Inline:
    """Make the engine `inline` for an installation."""
    return Inline(site.workplace)
