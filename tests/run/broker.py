"""A broker in memory: gives out a list of orders and remembers what came of them."""

import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from orchestrator.run.spool import Message
from orchestrator.spec.spec import Slot
from orchestrator.views.runs import Failure, Order
from workers.contract import Part, Progress, Recipe, Result


def order(loss: str = "ok", *, iterations: int = 3, seed: int = 0, **options: float) -> Order:
    """An order for `trainings.quick`."""
    recipe = Recipe(
        dataset=Part(name="digits"), backbone=Part(name="mlp"), sampler=Part(name="balanced"),
        loss=Part.model_validate({"name": loss, **options}), iterations=iterations, seed=seed,
    )  # fmt: skip
    return Order(
        attempt=str(uuid.uuid4()), training=str(uuid.uuid4()), number=1, recipe=recipe.model_dump(mode="json"),
        slot=Slot(gpus=0),
    )  # fmt: skip


@dataclass
class MemoryBroker:
    """Satisfies `Broker`; a lost order is given out again up to `retries` times."""

    waiting: deque[Order]
    retries: int = 2
    name: str = "test"
    lease: int = 1
    messages: dict[str, list[int]] = field(default_factory=dict)
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    unwanted: set[str] = field(default_factory=set)
    overtaken: set[str] = field(default_factory=set)
    close: bool = False
    at_tick: Callable[["MemoryBroker"], None] = lambda broker: None
    last: dict[str, Progress] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    lock: object = field(default_factory=threading.Lock)
    """Stands for what a real broker holds and nobody can pickle, such as its database."""

    def installation(self) -> str:
        return self.name

    def fence(self) -> int:
        return self.lease

    def tick(self) -> None:
        self.at_tick(self)

    def next_order(self) -> Order | None:
        while self.waiting and self.waiting[0].training in self.unwanted:
            self.ended.append(self.waiting.popleft().training)
        return self.waiting.popleft() if self.waiting else None

    def started(self, order: Order, holder: str, host: str) -> None:
        self.starts.append(order.training)
        self.holders[order.attempt] = holder

    def record(self, order: Order, message: Message) -> None:
        self.lines.setdefault(order.attempt, []).append(message.line)
        match message.content():
            case Progress() as progress:
                self.messages.setdefault(order.attempt, []).append(message.seq)
                self.last[order.training] = progress
            case Result() as result:
                self.finished(order, result)
            case Failure() as failure:
                self.failed(order, failure)
            case None:
                self.stopped(order)

    def finished(self, order: Order, result: Result) -> None:
        assert order.training not in self.results, "finished twice"
        self.results[order.training] = result
        self.ended.append(order.training)

    def failed(self, order: Order, failure: Failure) -> None:
        self.failures.append(failure)
        if failure.kind == "infrastructure" and order.number <= self.retries:
            self._again(order)
        else:
            self.ended.append(order.training)

    def _again(self, order: Order) -> None:
        resume = f"{order.training}/{order.number}/last.pt" if order.training in self.last else order.resume
        again = replace(order, attempt=str(uuid.uuid4()), number=order.number + 1, holder=None, seen=0, resume=resume)
        self.waiting.append(again)

    def stopped(self, order: Order) -> None:
        self.ended.append(order.training)

    def outranked(self, order: Order) -> bool:
        return order.training in self.overtaken

    def returned(self, order: Order, reason: str) -> None:
        self.given_back.append(order.training)
        if order.training in self.last:  # it had begun
            self._again(order)

    def needed(self, order: Order) -> bool:
        return order.training not in self.unwanted

    def needed_of(self, orders: Collection[Order]) -> set[str]:
        return {order.attempt for order in orders if self.needed(order)}

    def closing(self) -> bool:
        return self.close
