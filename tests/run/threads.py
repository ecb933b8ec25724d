"""An engine of somebody else's, in one file: two trainings at a time, each in a thread of this process."""

import socket
import threading
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from orchestrator.run.attempt import execute
from orchestrator.run.engine import Broker, Site, settle_from_spool
from orchestrator.run.inline import Inline
from orchestrator.run.spool import Message
from orchestrator.views.runs import Failure, Order

MOST = 2


@dataclass(slots=True)
class Running:
    """An order, and its request to stop: only one thread uses the broker."""

    order: Order
    stop: threading.Event = field(default_factory=threading.Event)


class Threads(Inline):
    """As the inline engine, but for how orders are run."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.workplace)
        self._site = site
        self._told: SimpleQueue[tuple[Running, Message]] = SimpleQueue()

    def run(self, broker: Broker) -> None:
        """Execute orders until there are none or the broker is closing."""
        running: list[Running] = []
        while True:
            while not broker.closing() and len(running) < MOST and (order := broker.next_order()) is not None:
                if order.holder is None:
                    running.append(self._begun(broker, order))
                else:
                    lost = Failure("infrastructure", "the process that trained it ended")
                    settle_from_spool(broker, order, self._site.workplace, order.seen, lost)
            if not running:
                return
            self._hear(broker, running)
            for one in running:
                if broker.closing() or not broker.needed(one.order):
                    one.stop.set()
            broker.tick()

    def _begun(self, broker: Broker, order: Order) -> Running:
        one = Running(order)
        broker.started(order, "thread", socket.gethostname())
        given = (order, self._site.workplace, one.stop.is_set, lambda message: self._told.put((one, message)))
        threading.Thread(target=execute, args=given, daemon=True).start()
        return one

    def _hear(self, broker: Broker, running: list[Running]) -> None:
        try:
            one, message = self._told.get(timeout=0.1)
        except Empty:
            return
        if message.final:
            running.remove(one)
        if not (message.kind == "stopped" and broker.needed(one.order)):  # else the next conductor resumes it
            broker.record(one.order, message)


def engine(site: Site) -> Threads:
    """The engine `tests.run.threads:engine`."""
    return Threads(site)
