"""The pool of slots that have joined by files: hands them out, takes them back, and finds what trains already."""

from collections.abc import Sequence

from orchestrator.run.files.held import JoinedSlot
from orchestrator.run.files.roster import Roster
from orchestrator.spec.axes import Slot
from orchestrator.views.operations import Shape, holds, possible, shape_of
from orchestrator.views.runs import Order


class FilePool:
    """What the dispatch asks of a pool, over the roster."""

    def __init__(self, roster: Roster, limit: int) -> None:
        self._roster, self._limit = roster, limit
        self._expected: list[Slot] = []
        self._adopting = True  # orders that a former run left may still come
        for slot in roster:  # what they train is claimed by the orders that stand for it, or by none
            slot.forget()

    def holding(self, name: str, attempt: str) -> JoinedSlot | None:
        """The slot of that name if it trains, or has just trained, this attempt, or is told to."""
        slot = self._roster.get(name)
        if slot is None or slot.gone or not slot.has(attempt):
            return None
        slot.attempt = attempt
        return slot

    def there(self, name: str) -> bool:
        """Whether there is a slot of that name."""
        slot = self._roster.get(name)
        return slot is not None and slot.gone is None

    def take(self, order: Order) -> JoinedSlot | None:
        """The smallest free slot that holds the order's shape, where its data are; none: wait until there is one."""
        if self._crowded():
            return None
        shape, lacking = shape_of(order.slot, self._roster.nodes()), self._lacking(order)
        fitting = [slot for slot in self._free() if holds(slot.node, (), shape) and slot.state.host not in lacking]
        taken = min(fitting, key=lambda slot: (slot.shape.gpus, slot.shape.cpus, slot.since), default=None)
        if taken is not None:
            taken.attempt = order.attempt
        return taken

    def possible(self, slot: Slot) -> bool:
        """Whether a slot that is there could train it."""
        return possible(slot, self._roster.nodes())

    def expect(self, waiting: Sequence[Slot]) -> None:
        """Which slots trainings wait for: an order is taken once one of these can be had."""
        self._expected = list({slot.model_dump_json(): slot for slot in waiting}.values())

    def full(self) -> bool:
        """True when no order can be taken: every slot that could train what waits is in use."""
        nodes, free = self._roster.nodes(), self._free()
        if self._crowded():
            return True
        shapes = [shape_of(slot, nodes) for slot in self._expected if possible(slot, nodes)]
        return not any(holds(slot.node, (), shape) for slot in free for shape in shapes) if shapes else not free

    def unclaimed(self) -> bool:
        """Whether a slot trains what no order stands for, or such orders may come of which the slot is gone."""
        return self._adopting or any(slot.stray for slot in self._roster)

    def reap(self) -> None:
        """Stop what no order stands for: it was cancelled or superseded while no conductor lived."""
        self._adopting = False
        for slot in self._roster:
            if attempt := slot.stray:
                slot.stop(attempt)

    def release(self, slot: JoinedSlot) -> None:
        """Give a slot back."""
        slot.give_back()

    def replace(self, slot: JoinedSlot, reason: str) -> None:
        """Have a slot go on as another process."""
        slot.give_back()
        slot.renew(reason)

    def lost(self, slot: JoinedSlot) -> None:
        """Give a slot up."""
        self._roster.give_up(slot)

    def training(self) -> list[Shape]:
        """The shapes of the slots that train."""
        return [slot.shape for slot in self._roster if slot.attempt is not None]

    def _crowded(self) -> bool:
        return len(self.training()) >= self._limit

    def _lacking(self, order: Order) -> set[str]:
        """The hosts without the order's data; none where no other can hold its slot: then its training says so."""
        hosts = self._roster.hosts(order.lacking)
        return hosts if possible(order.slot, [one for one in self._roster.nodes() if one.host not in hosts]) else set()

    def _free(self) -> list[JoinedSlot]:
        return [slot for slot in self._roster if slot.free]
