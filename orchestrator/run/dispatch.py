"""The dispatch: which order trains on which slot, and what becomes of it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from orchestrator.run.attempt import Workplace, explained
from orchestrator.run.engine import Broker, settle_from_spool
from orchestrator.run.spool import Message
from orchestrator.spec.axes import Slot
from orchestrator.views.runs import Failure, FailureKind, Order

STOP_SECONDS: Final = 30.0
"""An attempt that has not stopped this long after it was asked loses its slot."""
ROOM_SECONDS: Final = 3600.0
"""How long a slot may wait for room that something else on its node holds; then it is tried again, on any node."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an engine hears of an attempt and of the slot that trains it."""

    attempt: str
    said: Sequence[bytes] = ()  # lines of its spool
    host: str | None = None
    worn: str | None = None  # why the slot is to be replaced
    lost: str | None = None  # why nothing more will be heard of it


class Holder(Protocol):
    """A slot as its pool hands it out."""

    name: str
    since: float  # by the monotonic clock: when it was made, and later when it was given back

    @property
    def begun(self) -> bool:
        """Whether it ever was there."""

    def start(self, order: Order, workplace: Workplace) -> None:
        """Have it train an order; nobody waits for it."""

    def stop(self, attempt: str) -> None:
        """Ask it to stop an attempt at its next step."""


H = TypeVar("H", bound=Holder)


class Pool(Protocol[H]):
    """The slots of a cluster, whatever they are made of."""

    def unclaimed(self) -> bool:
        """Whether a slot trains what no order stands for yet."""

    def full(self) -> bool:
        """True when no order can be taken."""

    def reap(self) -> None:
        """End what no order stands for."""

    def take(self, order: Order) -> H | None:
        """A free slot, now the order's; none: wait until there is one."""

    def possible(self, slot: Slot) -> bool:
        """Whether what is there could hold such a slot, were it empty."""

    def holding(self, name: str, attempt: str) -> H | None:
        """The slot of that name if it trains, or has just trained, this attempt.

        Also one that was told to and has not answered yet.
        """

    def there(self, name: str) -> bool:
        """Whether there is a slot of that name, whatever it trains."""

    def release(self, slot: H) -> None:
        """Give a slot back."""

    def replace(self, slot: H, reason: str) -> None:
        """End a slot between two trainings."""

    def lost(self, slot: H) -> None:
        """End a slot that was lost."""


@dataclass(slots=True)
class Execution(Generic[H]):
    """An order that a slot trains."""

    order: Order
    slot: H
    seen: int
    heard: float  # when it last reported anything
    asked_to_stop: float | None = None


class Dispatch(Generic[H]):
    """Joins the broker and the slots."""

    def __init__(self, broker: Broker, pool: Pool[H], workplace: Workplace) -> None:
        self._broker, self._pool, self._workplace = broker, pool, workplace
        self._running: dict[str, Execution[H]] = {}  # by attempt
        self._begun: list[Execution[H]] = []  # since `begun` was called last
        self._held: Order | None = None  # claimed, but its slot is not free yet

    @property
    def held(self) -> Order | None:
        """The order that was claimed and waits for its slot."""
        return self._held

    @property
    def seen(self) -> dict[str, int]:
        """By attempt that trains, how many of its messages are recorded."""
        return {attempt: execution.seen for attempt, execution in self._running.items()}

    def busy(self) -> bool:
        """Whether anything trains or waits for its slot."""
        return bool(self._running) or self._held is not None

    def begun(self) -> list[Execution[H]]:
        """Begin orders as far as slots are free; returns what has begun since the last call, to be listened to."""
        self._dispatch()
        begun, self._begun = self._begun, []
        return begun

    def take(self, report: Report) -> None:
        """Record what is reported of an attempt; a report of one that has ended changes nothing."""
        execution = self._running.get(report.attempt)
        if execution is None:
            return
        if report.host:
            self._broker.started(execution.order, execution.slot.name, report.host)
        for message in map(Message.of, report.said):
            if message.seq <= execution.seen:
                continue
            execution.seen, execution.heard = message.seq, time.monotonic()
            if message.kind == "stopped" and execution.asked_to_stop is None and self._broker.wanted(execution.order):
                self._broker.returned(execution.order, "given back by its slot, whose time was up")
            else:
                self._broker.told(execution.order, message)
            if message.final:
                self._end(execution, report.worn)
        if report.lost:
            self._lose(execution, f"slot lost: {report.lost}")

    def watch(self) -> None:
        """Stop what is no longer wanted; end a slot that does not obey, or whose training reports nothing."""
        running = list(self._running.values())
        wanted = self._broker.wanted_of([one.order for one in running if one.asked_to_stop is None]) if running else ()
        for execution in running:
            if execution.asked_to_stop is None:
                if execution.order.attempt not in wanted:
                    execution.asked_to_stop = time.monotonic()
                    execution.slot.stop(execution.order.attempt)
                else:
                    self._listen(execution)
            elif time.monotonic() - execution.asked_to_stop > STOP_SECONDS:
                self._lose(execution, "slot lost: it did not stop when asked")
        self._reconsider()

    def _reconsider(self) -> None:
        """What waits for its slot keeps others waiting only while it is wanted and nothing ranks above it."""
        order = self._held
        if order is None or order.holder is not None:
            return
        if not self._broker.wanted(order):
            self._held = None
            self._broker.stopped(order)
        elif self._broker.outranked(order):
            self._held = None
            self._broker.returned(order, "gave way, before it began, to another sweep's priority or to its own's pause")

    def _dispatch(self) -> None:
        """Take orders until none waits, or the first has to wait for its slot."""
        while not self._broker.closing():
            if self._held is None and (self._pool.unclaimed() or not self._pool.full()):
                self._held = self._broker.next_order()
                if self._held is None or self._held.holder is None:  # what an earlier conductor left has all come
                    self._pool.reap()
            if self._held is None or not self._settled(self._held):
                return
            self._held = None

    def _settled(self, order: Order) -> bool:
        """Whether the order trains now or has ended; False while its slot is not free."""
        if order.holder is not None:
            self._adopt(order, order.holder)
        elif (slot := self._pool.take(order)) is not None:
            self._broker.started(order, slot.name, "")  # refused without the lease: then it never begins
            slot.start(order, self._workplace)
            self._begin(order, slot)
        elif not self._pool.possible(order.slot):  # its node left since it was claimed
            self._broker.returned(order, "no node that is there can hold its slot any more")
        else:
            return False
        return True

    def _adopt(self, order: Order, holder: str) -> None:
        """Go on with what an earlier conductor claimed; it is never begun here, since it may have begun."""
        slot = self._pool.holding(holder, order.attempt) if holder else None
        if slot is not None:
            self._begin(order, slot)
            return
        unbegun = not holder or self._pool.there(holder)  # no slot was noted, or one that was never told
        gone = None if unbegun else Failure("infrastructure", f"slot {holder} is gone")
        settle_from_spool(self._broker, order, self._workplace, order.seen, gone)

    def _begin(self, order: Order, slot: H) -> None:
        execution = self._running[order.attempt] = Execution(order, slot, order.seen, time.monotonic())
        self._begun.append(execution)

    def _end(self, execution: Execution[H], worn: str | None) -> None:
        self._running.pop(execution.order.attempt, None)
        if worn:
            self._pool.replace(execution.slot, worn)
        else:
            self._pool.release(execution.slot)

    def _listen(self, execution: Execution[H]) -> None:
        """End what has had no room for long, and what has reported nothing for long since it began."""
        minutes, now = execution.order.slot.stall_minutes, time.monotonic()
        if not execution.slot.begun:  # somebody whom the pool does not know holds its room: no fault of the training's
            execution.heard = now
            if now - execution.slot.since > ROOM_SECONDS:
                self._lose(execution, f"slot lost: its node had no room for {ROOM_SECONDS / 60:g} minutes")
        elif now - execution.heard > 60 * minutes:
            self._lose(execution, f"nothing was reported for {minutes:g} minutes (slot.stall_minutes)", "stalled")

    def _lose(self, execution: Execution[H], reason: str, kind: FailureKind = "infrastructure") -> None:
        begun = execution.seen > 0 or execution.slot.begun
        self._running.pop(execution.order.attempt, None)
        self._pool.lost(execution.slot)
        failure = Failure(kind, explained(reason), begun=begun)
        settle_from_spool(self._broker, execution.order, self._workplace, execution.seen, failure)
