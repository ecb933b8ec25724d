"""The broker that engines work for, while its conductor holds the lease."""

import time
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from orchestrator.conduct.chores import Chores
from orchestrator.conduct.heartbeat import Heartbeat
from orchestrator.host.logs import about
from orchestrator.host.tracing import span_of_attempt
from orchestrator.record.store import Store, Writer
from orchestrator.run.spool import Message
from orchestrator.views.errors import FencedError
from orchestrator.views.runs import Failure, Order

TICK_SECONDS: Final = 0.5


class LeasedBroker:
    """Gives out orders and takes what comes of them, in the thread that runs the engine; chores are done on the way."""

    def __init__(
        self, store: Store, writer: Writer, chores: Chores, lease: Heartbeat, asked: Callable[[], bool]
    ) -> None:
        self._store, self._writer, self._chores = store, writer, chores
        self._lease, self._asked = lease, asked
        self._ticked = 0.0
        self._orphans: list[Order] = []

    def installation(self) -> str:
        """The UUID of this database, which its next conductor finds too."""
        return self._writer.lease.installation()

    def fence(self) -> int:
        """The lease's."""
        return self._writer.lease.fence

    def closing(self) -> bool:
        """True once asked to end, or once another conductor holds the lease."""
        return self._asked() or self._lease.lost.is_set()

    def check_lease(self) -> None:
        """Raise FencedError once another conductor holds the lease."""
        if self._lease.lost.is_set():
            raise FencedError("another conductor holds the lease")

    def tick(self) -> None:
        """Apply requests, expand queued sweeps and settle what ended, at most twice a second."""
        if time.monotonic() - self._ticked < TICK_SECONDS:
            return
        self.check_lease()
        self._chores.do(finalize=not self._ticked)
        self._ticked = time.monotonic()

    def hurry(self) -> None:
        """Let the next tick come at once, and settle whatever has ended."""
        self._ticked = 0.0

    def adopt(self) -> int:
        """Take up the orders that an earlier conductor left running; how many there are."""
        self._orphans = self._store.claims.orphans()
        return len(self._orphans)

    def next_order(self) -> Order | None:
        """An order that an earlier conductor left running, else the next waiting training."""
        if self._orphans:
            return self._orphans.pop(0)
        order = self._claim()
        if order is None and self._chores.search():
            order = self._claim()
        return order

    def _claim(self) -> Order | None:
        order = self._writer.claims.next(self._chores.passed_over())
        return order and replace(order, lacking=self._chores.hindrances.lacking(order))

    def wanted(self, order: Order) -> bool:
        """Whether any trial still wants the order's training."""
        return self._store.claims.wanted(order.attempt)

    def wanted_of(self, orders: Collection[Order]) -> Set[str]:
        """The attempts of the orders whose training some trial still wants."""
        return self._store.claims.wanted_of([order.attempt for order in orders])

    def started(self, order: Order, holder: str, host: str) -> None:
        """Note the slot that trains the order."""
        with _recording("started", order):
            self._chores.intake.started(order, holder, host)

    def told(self, order: Order, message: Message) -> None:
        """Read a message, the first and only time, and record what it says."""
        with _recording(message.kind, order) if message.final else about(**order.ids):
            self._chores.intake.told(order, message)

    def failed(self, order: Order, failure: Failure) -> None:
        """Record a failure, and whether it is tried again."""
        with _recording("failed", order):
            self._chores.intake.failed(order, failure)

    def stopped(self, order: Order) -> None:
        """Record that an order stopped unwanted."""
        with _recording("stopped", order):
            self._chores.intake.stopped(order)

    def outranked(self, order: Order) -> bool:
        """Whether another of a higher priority waits, or only paused sweeps want the order."""
        return self._store.claims.outranked(order.attempt, self._chores.passed_over())

    def returned(self, order: Order, reason: str) -> None:
        """Record that an order was not begun, or was given back, and why."""
        self._chores.intake.returned(order, reason)
        self._chores.hindrances.look(anew=True)


@contextmanager
def _recording(what: str, order: Order) -> Iterator[None]:
    with about(**order.ids), span_of_attempt(f"record {what}", order.training, order.attempt):
        yield
