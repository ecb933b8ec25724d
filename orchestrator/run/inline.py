"""The inline engine: trains in this process, one after the other; also the researcher's debugger."""

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from orchestrator.run.attempt import Workplace, execute
from orchestrator.run.engine import Desk
from orchestrator.run.inspection import inspect, seen
from orchestrator.run.memory_growth import release
from orchestrator.run.messages import hand_on, settle_from_spool
from orchestrator.run.spool import Message
from orchestrator.views.trial import Failure, Inspected, Node, Order, Slot
from workers.catalog import Need

HOLDER: Final = "inline"


class Inline:
    """Executes each order where it stands."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._found: list[Inspected] = []

    def run(self, desk: Desk) -> None:
        """Execute orders until there are none or the desk is closing."""
        while not desk.closing() and (order := desk.next_order()) is not None:
            if order.holder is not None:
                self._settle_lost(desk, order)
            else:
                self._execute(desk, order)
            desk.tick()

    def nodes(self) -> None:
        """Not known: here every slot is this process."""

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

    def rest(self, desk: Desk) -> None:
        """Nothing is ever left."""

    def leave(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""

    def _execute(self, desk: Desk, order: Order) -> None:
        desk.started(order, HOLDER, socket.gethostname())

        def tell(message: Message) -> None:
            # a stop that the desk's closing caused leaves the attempt open: the next conductor resumes it
            if message.kind == "stopped" and desk.wanted(order):
                return
            hand_on(desk, order, message)
            desk.tick()

        execute(order, self._workplace, lambda: desk.closing() or not desk.wanted(order), tell)
        with suppress(RuntimeError):  # a GPU that has failed: the next training on it will say so
            release(self._workplace.train)

    def _settle_lost(self, desk: Desk, order: Order) -> None:
        failure = Failure("infrastructure", "the process that trained it ended")
        settle_from_spool(desk, order, self._workplace, order.seen, failure)
