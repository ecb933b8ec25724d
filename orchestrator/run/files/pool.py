"""The pool of slots that joined by files: which there are, what each trains, and who is lost."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.run.attempt import Workplace
from orchestrator.run.files.slot import (
    ORDERS,
    OWNER,
    SILENT_SECONDS,
    WORKPLACES,
    Box,
    DamagedFileError,
    Instruction,
    State,
    boxes,
    read_as,
    tidy,
    write,
)
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import MetricsweepError, UnavailableError
from orchestrator.views.operations import Node, ProcessUsage, Shape, SlotReport, holds, possible, shape_of
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)


class JoinedSlot:
    """One slot. It is judged by this process's monotonic clock, never by the times of another machine."""

    def __init__(self, box: Box, greeting: Instruction, now: Callable[[], float] = time.monotonic) -> None:
        self.box, self.name, self._now = box, box.name, now
        self.state = State()
        self.attempt: str | None = None  # of the order that it was given
        self._ended: str | None = None  # the attempt that it had before
        self.since = self.heard = now()
        self.gone: str | None = None  # why it can be followed no more
        self._told = greeting
        self._posted = False

    @property
    def here(self) -> bool:
        """Whether it is there and stays."""
        return self.gone is None and self.state.phase == "here" and self.state.beat > 0

    @property
    def node(self) -> Node:
        """What it offers, as a node of its own: a scheduler has set that aside for it."""
        return Node(self.name, self.state.host, dict(self.state.resources))

    @property
    def shape(self) -> Shape:
        """All of what it offers: it trains one at a time."""
        offers = dict(self.state.resources)
        cpus, gpus, memory = (offers.pop(name, 0.0) for name in ("CPU", "GPU", "memory"))
        return Shape(cpus, gpus, int(memory), tuple(sorted(offers.items())))

    @property
    def answers(self) -> bool:
        """Whether it has taken the latest instruction: from then on it obeys no earlier conductor."""
        return (self.state.fence, self.state.taken) == (self._told.fence, self._told.number) and self.state.beat > 0

    @property
    def begun(self) -> bool:
        """Whether it has taken what it was given."""
        return self.answers

    @property
    def free(self) -> bool:
        """Whether it waits for an order."""
        return self.here and self.answers and self.attempt is None and not self.state.busy

    @property
    def stray(self) -> str | None:
        """The attempt that it trains though no order stands for that, unless it has been asked to stop it."""
        trains = self.state.attempt if self.answers and self.state.busy else None
        known = trains in (self.attempt, self._ended) or (self._told.do == "stop" and self._told.attempt == trains)
        return None if known else trains

    def has(self, attempt: str) -> bool:
        """Whether it trains an attempt, has just trained it, or is told to and has not answered yet."""
        told = self._told.order or {}
        return self.state.attempt == attempt or (not self.answers and told.get("attempt") == attempt)

    def forget(self) -> None:
        """What it trains is to be claimed anew."""
        self.attempt = self._ended = None

    def give_back(self) -> None:
        """Its attempt has ended."""
        self.attempt, self._ended, self.since = None, self.attempt, self._now()

    def look(self) -> None:
        """Read what it says; one that says nothing for long is gone, as is one that has left."""
        try:
            state = self.box.state()
        except FileNotFoundError:
            self.gone = self.gone or "its folder is gone"
            return
        except OSError:
            state = self.state
        if state is None:
            self.gone = "it is of another release"
            return
        if state.beat != self.state.beat:
            self.state, self.heard = state, self._now()
        if state.phase == "left":
            self.gone = "it has left: its job ended, or was about to"
        elif self._now() - self.heard > SILENT_SECONDS:
            self.gone = f"it has told nothing for {SILENT_SECONDS:g} s"
        elif not self.answers:
            self._post()

    def start(self, order: Order, workplace: Workplace) -> None:
        """Have it train an order."""
        given = ORDERS.dump_python(order, mode="json"), WORKPLACES.dump_python(workplace, mode="json")
        self.tell(Instruction(do="train", order=given[0], workplace=given[1]))

    def stop(self, attempt: str) -> None:
        """Ask it to stop an attempt at its next step."""
        self.tell(Instruction(do="stop", attempt=attempt))

    def tell(self, instruction: Instruction) -> None:
        """Give it its next instruction, under our fence; one that cannot be written now is written at the next look."""
        fence, number, look, needs = self._told.fence, self._told.number + 1, self._told.look, self._told.needs
        workplace = instruction.workplace or self._told.workplace
        self._told = replace(instruction, fence=fence, number=number, look=look, needs=needs, workplace=workplace)
        self._posted = False
        self._post()

    def renew(self, reason: str) -> None:
        """Have it go on as another process, between two trainings."""
        log.info("slot %s is replaced: %s", self.name, reason)
        self.tell(Instruction(do="renew"))

    def inspect(self, needs: list[object], workplace: Workplace) -> int:
        """Have it look at its data root; gives the number of the inspection."""
        given = WORKPLACES.dump_python(workplace, mode="json")
        self._told = replace(self._told, look=self._told.look + 1, needs=needs, workplace=given)
        self._posted = False
        self._post()
        return self._told.look

    def _post(self) -> None:
        """Write the instruction, unless it stands there: a former conductor may have written over it."""
        with suppress(OSError):
            if self._posted and self._stands():
                return
            self.box.instruct(self._told)
            self._posted = True

    def _stands(self) -> bool:
        try:
            return _heads(self.box.instruction()) == _heads(self._told)
        except DamagedFileError:
            return False


def _heads(instruction: Instruction) -> tuple[int, int, int]:
    return instruction.fence, instruction.number, instruction.look


LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Owner:
    installation: str
    fence: int


_READER: Final = TypeAdapter(_Owner)


@dataclass(frozen=True, slots=True)
class Allegiance:
    """Whom slots obey: a conductor of this installation, by its lease, with this code."""

    installation: str
    fence: int
    edition: str

    def claim(self, room: Path) -> None:
        """Note whose slots these are; raises MetricsweepError where another installation's, or a later lease's."""
        file = room / OWNER
        with suppress(FileNotFoundError):
            owner = _owner(file)
            if owner.installation != self.installation:
                raise MetricsweepError(
                    f"{room} has the slots of another installation: give each its own METRICSWEEP_STORAGE_URL; or, if "
                    f"its database is gone for good and no slot of it lives, remove {file}"
                )
            if owner.fence > self.fence:
                raise MetricsweepError(
                    f"{room} was last used under lease {owner.fence}, and this conductor holds lease {self.fence}: "
                    f"its database is an older copy. Slots would not obey it; once none of them lives, remove {file}"
                )
        write(file, {"installation": self.installation, "fence": self.fence})


class Roster:
    """The slots of one installation. It makes none: whoever keeps them alive reads the demand.

    A slot is used once it has answered under our fence. From then on it obeys no conductor that held the lease before,
    whatever that one writes yet.
    """

    def __init__(self, room: Path, allegiance: Allegiance, now: Callable[[], float] = time.monotonic) -> None:
        self.room, self.allegiance, self._now = room, allegiance, now
        allegiance.claim(room)
        tidy(room)
        self._slots: dict[str, JoinedSlot] = {}
        self._hosts: dict[str, str] = {}  # by slot, those that left included
        self._struck: set[str] = set()  # slots whose folders could not be removed yet
        self._looked = float("-inf")
        self._mustered = False

    def __iter__(self) -> Iterator[JoinedSlot]:
        """The slots, those that are gone and have an order still included."""
        return iter(list(self._slots.values()))

    def get(self, name: str) -> JoinedSlot | None:
        """The slot of that name."""
        return self._slots.get(name)

    def refresh(self) -> None:
        """Look what all slots say, where that is due; raises UnavailableError where the storage does not answer."""
        if self._now() - self._looked < LOOK_SECONDS:
            return
        try:
            there = {box.name: box for box in boxes(self.room)}
        except OSError as error:
            raise UnavailableError(f"the storage does not answer: {error}") from error
        if self._now() - self._looked > SILENT_SECONDS / 2:  # nobody has listened meanwhile: that is no silence
            for slot in self:
                slot.heard = self._now()
        self._looked = self._now()
        self._struck &= there.keys()
        for name in self._struck:
            there.pop(name).remove()
        for name in sorted(there.keys() - self._slots.keys()):
            self._slots[name] = JoinedSlot(there[name], Instruction(fence=self.allegiance.fence), self._now)
        for slot in self:
            slot.look()
            self._hosts[slot.name] = slot.state.host
            if slot.gone and slot.attempt is None:
                self.give_up(slot)
            elif slot.free:
                self._judge(slot)

    def mustered(self) -> bool:
        """Whether each slot that was there has answered or is gone; until then one may train for a former conductor."""
        self.refresh()
        self._mustered = self._mustered or all(slot.answers for slot in self)
        return self._mustered

    def settling(self) -> bool:
        """Whether a slot will soon be free: it joins, or puts away what it has trained."""
        there = (slot for slot in self if slot.gone is None and slot.state.phase == "here")
        return any(slot.attempt is None and not slot.free for slot in there)

    def nodes(self) -> Sequence[Node]:
        """What the slots offer, each as a node of its own."""
        self.refresh()
        return [slot.node for slot in self if slot.here]

    def machines(self) -> list[Node]:
        """One slot of each host that has any: it looks at the host's data root for all."""
        self.refresh()
        return list({slot.state.host: slot.node for slot in self if slot.answers and slot.here}.values())

    def hosts(self, names: Sequence[str]) -> set[str]:
        """The hosts of slots, those that left included."""
        return {self._hosts[name] for name in names if name in self._hosts}

    def look(self, seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with what each said of itself last; `seen` is by attempt how many messages are recorded."""
        self.refresh()
        return [_report(slot, seen) for slot in self if slot.here]

    def give_up(self, slot: JoinedSlot) -> None:
        """Strike a slot off; if it lives, it ends what it trains once it sees that."""
        self._slots.pop(slot.name, None)
        self._struck.add(slot.name)  # one whose folder stays would join as another, which never answers
        slot.box.remove()

    def _judge(self, slot: JoinedSlot) -> None:
        """A free slot that has grown, or that holds other code, trains nothing more."""
        if slot.state.worn:
            slot.renew(slot.state.worn)
        elif slot.state.edition != self.allegiance.edition:
            log.warning("slot %s on %s holds the code of another release, and ends", slot.name, slot.state.host)
            slot.tell(Instruction(do="end"))


def _owner(file: Path) -> _Owner:
    try:
        return read_as(_READER, file)
    except DamagedFileError as error:
        raise MetricsweepError(f"{error}; if no other installation has its slots there, remove it") from error


def _usage(slot: JoinedSlot) -> ProcessUsage | None:
    try:
        return None if slot.state.usage is None else ProcessUsage.model_validate(slot.state.usage)
    except ValidationError:  # of another release, say: a number for people is no reason to lose the slot
        return None


def _report(slot: JoinedSlot, seen: Mapping[str, int]) -> SlotReport:
    state, usage = slot.state, _usage(slot)
    recorded, lag = seen.get(slot.attempt or ""), None
    if recorded is not None and recorded < state.said and state.attempt == slot.attempt:
        first = state.said - len(state.ages)
        lag = state.ages[max(0, recorded - first)] if state.ages else None
    return SlotReport(slot.name, slot.name, state.host, slot.shape.bundle, slot.attempt, usage, lag)


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
