"""What an earlier conductor claimed goes on where it trains, or waits again; it never begins a second time."""

from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from orchestrator.run.attempt import Workplace, execute
from orchestrator.run.dispatch import Dispatch, Pool, Report
from orchestrator.run.inline import Inline
from orchestrator.views.errors import FencedError
from orchestrator.views.operations import Node, Shape
from orchestrator.views.runs import Order
from tests.run.broker import MemoryBroker, order


@dataclass(eq=False)
class Held:
    """A slot that obeys at once."""

    name: str
    attempt: str | None = None
    started: list[str] = field(default_factory=list)
    since: float = 0.0
    begun: bool = True

    def start(self, order: Order, workplace: Workplace) -> None:
        self.started.append(order.attempt)

    def stop(self, attempt: str) -> None:
        self.attempt = None


class Slots(Pool[Held]):
    """Some slots; some of them train an order of a former conductor."""

    def __init__(self, *slots: Held) -> None:
        super().__init__(9)
        self.slots, self.reaped = slots, 0

    def nodes(self) -> list[Node]:
        return []

    def training(self) -> list[Shape]:
        return []

    def unclaimed(self) -> bool:
        return self.reaped == 0

    def full(self) -> bool:
        return all(slot.attempt for slot in self.slots)

    def reap(self) -> None:
        self.reaped += 1

    def take(self, order: Order) -> Held | None:
        return next((slot for slot in self.slots if slot.attempt is None), None)

    def holding(self, name: str, attempt: str) -> Held | None:
        return next((one for one in self.slots if one.name == name and one.attempt == attempt), None)

    def exists(self, name: str) -> bool:
        return any(one.name == name for one in self.slots)

    def release(self, slot: Held) -> None:
        slot.attempt = None

    def replace(self, slot: Held, reason: str) -> None:
        slot.attempt = None

    def lost(self, slot: Held) -> None:
        slot.attempt = None


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    return Workplace("tests.run.trainings:quick", tmp_path, tmp_path)


def test_an_attempt_whose_slot_is_gone_has_failed(work: Workplace) -> None:
    left = replace(order(), holder="two")
    broker = MemoryBroker(deque([left]), retries=0)
    assert list(Dispatch(broker, Slots(Held("one")), work).begun()) == []
    assert (broker.given_back, [each.message for each in broker.failures]) == ([], ["slot two is gone"])


def test_a_conductor_without_the_lease_begins_nothing(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stood still between claiming an attempt and having a slot begin it: another conductor has it by now."""
    broker, free = MemoryBroker(deque([order()])), Held("one")

    def refused(*given: object) -> None:
        raise FencedError("another conductor holds the lease")

    monkeypatch.setattr(broker, "started", refused)
    with pytest.raises(FencedError):
        list(Dispatch(broker, Slots(free), work).begun())
    assert free.started == []


def test_nothing_is_reaped_before_the_last_order_that_was_left(work: Workplace) -> None:
    first, last = replace(order(), holder=""), replace(order(), holder="two")
    broker, pool = MemoryBroker(deque([first, last])), Slots(Held("one"), Held("two", attempt=last.attempt))
    given, next_order = list[int](), broker.next_order
    broker.next_order = lambda: given.append(pool.reaped) or next_order()  # type: ignore[method-assign]
    (execution,) = Dispatch(broker, pool, work).begun()
    assert execution.order is last
    assert given[:2] == [0, 0], "the second one's slot would have been ended"


def test_a_result_counts_though_its_slot_is_lost_and_nobody_wants_it_now(work: Workplace) -> None:
    """Its trial was pruned meanwhile; somebody may want it later, and it would be trained again."""
    done, left = (replace(order(), holder="one") for _ in range(2))
    execute(done, work, lambda: False, lambda message: None)
    for each, results in ((done, [done.training]), (left, [])):
        broker = MemoryBroker(deque([each]))
        dispatch = Dispatch(broker, Slots(Held("one", attempt=each.attempt)), work)
        list(dispatch.begun())
        broker.unwanted.add(each.training)
        dispatch.take(Report(each.attempt, lost="it does not answer"))
        assert (list(broker.results), broker.ended, broker.failures) == (results, [each.training], [])


def test_what_has_spooled_its_end_ends_so_though_its_slot_was_never_noted(work: Workplace) -> None:
    done = order()
    execute(done, work, lambda: False, lambda message: None)
    for engine in (lambda broker: list(Dispatch(broker, Slots(Held("one")), work).begun()), Inline(work).run):
        broker = MemoryBroker(deque([replace(done, holder="")]))
        engine(broker)
        assert list(broker.results) == [done.training]
