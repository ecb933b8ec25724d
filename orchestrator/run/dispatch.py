"""The dispatch: assigns orders to slots, and follows each order to its end."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from orchestrator.run.attempt import Workplace, explained
from orchestrator.run.engine import Broker, settle_from_spool
from orchestrator.run.spool import Message
from orchestrator.spec.spec import Slot
from orchestrator.views.operations import Node, Shape, possible
from orchestrator.views.runs import Failure, FailureKind, Order

TURN_SECONDS: Final = 0.25  # how long a turn of the loop waits for reports
WATCH_SECONDS: Final = 0.5
LINGER_SECONDS: Final = 60.0  # how long a run continues while nothing trains and there are no orders
_STOP_SECONDS: Final = 30.0  # an attempt that has not stopped this long after the request loses its slot
ROOM_SECONDS: Final = 3600.0
"""How long a new slot may wait for resources that something else on its node holds; then a training tries again."""


@dataclass(frozen=True, slots=True)
class Report:
    """The news of an attempt and its slot: new messages, its machine, or that the slot is lost."""

    attempt: str
    lines: Sequence[bytes] = ()  # lines of its spool
    host: str | None = None
    replace_reason: str | None = None  # why to replace the slot
    lost: str | None = None  # why no more messages will come


class Holder(Protocol):
    """The interface of a slot that can train an order."""

    name: str
    since: float  # by the monotonic clock: when it was made, and later when it was released

    @property
    def begun(self) -> bool:
        """Whether the process of the slot ever ran."""

    def start(self, order: Order, workplace: Workplace) -> None:
        """Make the slot train an order, without waiting for an answer."""

    def stop(self, attempt: str) -> None:
        """Ask the slot to stop an attempt at its next step."""


H = TypeVar("H", bound=Holder)


class Pool(Protocol[H]):
    """The slots of a cluster, of which at most `limit` train at once."""

    _limit: int
    _expected: list[Slot]

    def __init__(self, limit: int) -> None:
        self._limit, self._expected = limit, []

    def nodes(self) -> Sequence[Node]:
        """The nodes of the cluster."""

    def training(self) -> list[Shape]:
        """The resources of the slots that train now."""

    def unclaimed(self) -> bool:
        """Whether a slot trains an attempt that no order has claimed yet."""

    def full(self) -> bool:
        """Whether no slot can take an order now."""

    def reap(self) -> None:
        """End attempts on slots that no order has claimed."""

    def take(self, order: Order) -> H | None:
        """Assign a free slot to an order; `None` means that none is free yet."""

    def holding(self, name: str, attempt: str) -> H | None:
        """The slot `name` if it trains this attempt, has just trained it, or was assigned it."""

    def exists(self, name: str) -> bool:
        """Whether a slot of this name exists, whatever it trains."""

    def release(self, slot: H) -> None:
        """Make a slot free again after its attempt has ended."""

    def replace(self, slot: H, reason: str) -> None:
        """Replace the process of a slot between two trainings, for a reason that is logged."""

    def lost(self, slot: H) -> None:
        """Remove a slot that was lost."""

    def expect(self, waiting: Sequence[Slot]) -> None:
        """Set which slots trainings wait for: an order is taken once one of them is free or can be made."""
        self._expected = list({slot.model_dump_json(): slot for slot in waiting}.values())

    def possible(self, slot: Slot) -> bool:
        """Whether the cluster could hold such a slot if it were empty."""
        return possible(slot, self.nodes())

    def _crowded(self) -> bool:
        return len(self.training()) >= self._limit


@dataclass(slots=True)
class Execution(Generic[H]):
    """An order that a slot trains."""

    order: Order
    slot: H
    seen: int  # messages recorded
    last_message: float  # when it last reported
    stop_requested: float | None = None


class Dispatch(Generic[H]):
    """Passes orders from the broker to the slots, and reports from the slots to the broker."""

    def __init__(self, broker: Broker, pool: Pool[H], workplace: Workplace) -> None:
        self._broker, self._pool, self._workplace = broker, pool, workplace
        self._running: dict[str, Execution[H]] = {}  # by attempt
        self.claimed: Order | None = None
        """The order that was claimed and waits for its slot."""

    @property
    def seen(self) -> dict[str, int]:
        """The number of recorded messages of each running attempt."""
        return {attempt: execution.seen for attempt, execution in self._running.items()}

    @property
    def running(self) -> Collection[str]:
        """The running attempts, as a view that follows changes."""
        return self._running.keys()

    def serve(self, follow: Callable[[Execution[H]], object], reports: Callable[[float], Iterable[Report]]) -> None:
        """Work until nothing has trained or waited for a while, or the broker is closing.

        `follow` is called with each execution that begins; `reports` returns the news of all that run, and waits up to
        so many seconds for them.
        """
        busy = watched = time.monotonic()
        while not self._broker.closing():
            self._broker.tick()
            for execution in self.begun():
                follow(execution)
            now = time.monotonic()
            if self.busy():
                busy = now
            elif now - busy >= LINGER_SECONDS:
                return
            for report in reports(TURN_SECONDS):
                self.take(report)
            if now - watched > WATCH_SECONDS:
                watched = now
                self.watch()

    def busy(self) -> bool:
        """Whether an order trains or waits for its slot."""
        return bool(self._running) or self.claimed is not None

    def begun(self) -> Iterator[Execution[H]]:
        """Claim orders while one is ready and has a slot; yields the executions that begin."""
        while not self._broker.closing():
            if self.claimed is None and (self._pool.unclaimed() or not self._pool.full()):
                self.claimed = self._broker.next_order()
                if self.claimed is None or self.claimed.holder is None:  # an earlier conductor's orders come first
                    self._pool.reap()
            if (order := self.claimed) is None or not self._settled(order):
                return
            self.claimed = None
            if order.attempt in self._running:
                yield self._running[order.attempt]

    def take(self, report: Report) -> None:
        """Record the report of an attempt; a report of an ended attempt changes nothing."""
        execution = self._running.get(report.attempt)
        if execution is None:
            return
        if report.host:
            self._broker.started(execution.order, execution.slot.name, report.host)
        for message in map(Message.of, report.lines):
            if message.seq <= execution.seen:
                continue
            execution.seen, execution.last_message = message.seq, time.monotonic()
            if message.kind == "stopped" and execution.stop_requested is None and self._broker.needed(execution.order):
                self._broker.returned(execution.order, "returned by its slot, whose time was up")
            else:
                self._broker.record(execution.order, message)
            if message.final:
                self._end(execution, report.replace_reason)
        if report.lost:
            self._lose(execution, f"slot lost: {report.lost}")

    def watch(self) -> None:
        """Stop attempts that are no longer needed, and end slots that do not obey or whose training is silent."""
        running = list(self._running.values())
        needed = self._broker.needed_of([one.order for one in running if one.stop_requested is None]) if running else ()
        for execution in running:
            if execution.stop_requested is None:
                if execution.order.attempt not in needed:
                    execution.stop_requested = time.monotonic()
                    execution.slot.stop(execution.order.attempt)
                else:
                    self._check_progress(execution)
            elif time.monotonic() - execution.stop_requested > _STOP_SECONDS:
                self._lose(execution, "slot lost: it did not stop when asked")
        self._reconsider()

    def _reconsider(self) -> None:
        """Give up the waiting order, which blocks others, once it is not needed or is outranked."""
        order = self.claimed
        if order is None or order.holder is not None:
            return
        if not self._broker.needed(order):
            self.claimed = None
            self._broker.stopped(order)
        elif self._broker.outranked(order):
            self.claimed = None
            self._broker.returned(
                order, "returned before it began: another sweep has a higher priority, or its own sweep is paused"
            )

    def _settled(self, order: Order) -> bool:
        """Start, adopt or return an order; False while its slot is not free."""
        if order.holder is not None:
            self._adopt(order, order.holder)
        elif (slot := self._pool.take(order)) is not None:
            self._broker.started(order, slot.name, "")  # raises without the lease, and then the order never begins
            slot.start(order, self._workplace)
            self._begin(order, slot)
        elif not self._pool.possible(order.slot):  # its node left after the order was claimed
            self._broker.returned(order, "no node that is there can hold its slot any more")
        else:
            return False
        return True

    def _adopt(self, order: Order, holder: str) -> None:
        """Follow an order that an earlier conductor claimed. It is never started again, since it may have begun."""
        slot = self._pool.holding(holder, order.attempt) if holder else None
        if slot is not None:
            self._begin(order, slot)
            return
        unbegun = not holder or self._pool.exists(holder)  # no slot was recorded, or one that did not get the order
        gone = None if unbegun else Failure("infrastructure", f"slot {holder} is gone")
        settle_from_spool(self._broker, order, self._workplace, order.seen, gone)

    def _begin(self, order: Order, slot: H) -> None:
        self._running[order.attempt] = Execution(order, slot, order.seen, time.monotonic())

    def _end(self, execution: Execution[H], replace_reason: str | None) -> None:
        self._running.pop(execution.order.attempt, None)
        if replace_reason:
            self._pool.replace(execution.slot, replace_reason)
        else:
            self._pool.release(execution.slot)

    def _check_progress(self, execution: Execution[H]) -> None:
        """End an attempt whose slot never got resources, or which has not reported for too long."""
        minutes, now = execution.order.slot.stall_minutes, time.monotonic()
        if not execution.slot.begun:  # its resources are used by something that the pool does not know
            execution.last_message = now
            if now - execution.slot.since > ROOM_SECONDS:
                self._lose(execution, f"slot lost: its node had no room for {ROOM_SECONDS / 60:g} minutes")
        elif now - execution.last_message > 60 * minutes:
            self._lose(execution, f"nothing was reported for {minutes:g} minutes (slot.stall_minutes)", "stalled")

    def _lose(self, execution: Execution[H], reason: str, kind: FailureKind = "infrastructure") -> None:
        begun = execution.seen > 0 or execution.slot.begun
        self._running.pop(execution.order.attempt, None)
        self._pool.lost(execution.slot)
        failure = Failure(kind, explained(reason), begun=begun)
        settle_from_spool(self._broker, execution.order, self._workplace, execution.seen, failure)
