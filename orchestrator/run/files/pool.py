"""The slots that joined over a shared folder: which exist, what each trains, and which are lost."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Pool
from orchestrator.run.files.slot import (
    ORDERS,
    OWNER,
    SILENT_SECONDS,
    WORKPLACES,
    Command,
    DamagedFileError,
    Instruction,
    Mailbox,
    State,
    mailboxes,
    read_as,
    tidy,
    write,
)
from orchestrator.run.slot import lag
from orchestrator.views.errors import MetricsweepError, UnavailableError
from orchestrator.views.operations import Node, ProcessUsage, Shape, SlotReport, holds, possible, shape_of
from orchestrator.views.runs import Order

log = logging.getLogger(__name__)


class JoinedSlot:
    """A slot that joined over a shared folder, as the conductor sees it. Times are of a monotonic clock."""

    def __init__(self, mailbox: Mailbox, greeting: Instruction) -> None:
        self.mailbox, self.name = mailbox, mailbox.name
        self.state = State()
        self.attempt: str | None = None  # of its order
        self._ended: str | None = None  # the attempt before
        self.since = self.last_report = time.monotonic()
        self.gone: str | None = None  # why it is lost
        self._instruction = greeting
        self._posted = False

    @property
    def joined(self) -> bool:
        """Whether the slot has joined and is not leaving."""
        return self.gone is None and self.state.phase == "joined" and self.state.beat > 0

    @property
    def node(self) -> Node:
        """The slot as a node of its own, since a scheduler has reserved its resources."""
        return Node(self.name, self.state.host, dict(self.state.resources))

    @property
    def shape(self) -> Shape:
        """All resources of the slot: it trains one attempt at a time."""
        return Shape.of(self.state.resources)

    @property
    def acknowledged(self) -> bool:
        """Whether the slot has acknowledged the latest instruction, so that it obeys no earlier conductor."""
        latest = (self.state.fence, self.state.acknowledged)
        return latest == (self._instruction.fence, self._instruction.number) and self.state.beat > 0

    begun = acknowledged  # it has received its order

    @property
    def free(self) -> bool:
        """Whether the slot waits for an order."""
        return self.joined and self.acknowledged and self.attempt is None and not self.state.busy

    @property
    def stray(self) -> str | None:
        """The attempt that the slot trains without an order, unless it was asked to stop it."""
        trains = self.state.attempt if self.acknowledged and self.state.busy else None
        stopped = self._instruction.attempt if self._instruction.do == "stop" else None
        return None if trains in (self.attempt, self._ended, stopped) else trains

    def has(self, attempt: str) -> bool:
        """Whether the slot trains an attempt, has just trained it, or was assigned it and has not acknowledged that."""
        order = self._instruction.order or {}
        return self.state.attempt == attempt or (not self.acknowledged and order.get("attempt") == attempt)

    def forget(self) -> None:
        """Forget the order of the slot, which is to be claimed again."""
        self.attempt = self._ended = None

    def give_back(self) -> None:
        """Forget the order of the slot, which has ended."""
        self.attempt, self._ended, self.since = None, self.attempt, time.monotonic()

    def report(self, seen: Mapping[str, int]) -> SlotReport:
        """The slot with its last state, for clients; `seen` has the recorded messages by attempt."""
        state, usage, waited = self.state, None, None
        with suppress(ValidationError):  # of the usage that another release reports
            usage = None if state.usage is None else ProcessUsage.model_validate(state.usage)
        if state.attempt == self.attempt:
            waited = lag(state.message_count, state.message_ages, seen.get(self.attempt or ""))
        return SlotReport(self.name, self.name, state.host, self.shape.bundle, self.attempt, usage, waited)

    def refresh(self) -> None:
        """Read the state file of the slot; a slot that has left or been silent for long is gone."""
        try:
            state = self.mailbox.state()
        except FileNotFoundError:
            self.gone = self.gone or "its folder is gone"
            return
        except OSError:
            state = self.state
        if state is None:
            self.gone = "it is of another release"
            return
        if state.beat != self.state.beat:
            self.state, self.last_report = state, time.monotonic()
        if state.phase == "left":
            self.gone = "it has left: its job ended, or was about to"
        elif time.monotonic() - self.last_report > SILENT_SECONDS:
            self.gone = f"it has not written for {SILENT_SECONDS:g} s"
        elif not self.acknowledged:
            self._write()

    def start(self, order: Order, workplace: Workplace) -> None:
        """Instruct the slot to train an order."""
        given = ORDERS.dump_python(order, mode="json"), WORKPLACES.dump_python(workplace, mode="json")
        self._instruct("train", order=given[0], workplace=given[1])

    def stop(self, attempt: str) -> None:
        """Instruct the slot to stop an attempt at its next step."""
        self._instruct("stop", attempt=attempt)

    def end(self) -> None:
        """Instruct the slot to leave."""
        self._instruct("end")

    def renew(self, reason: str) -> None:
        """Instruct the slot to continue as another process, between two trainings."""
        log.info("slot %s is replaced: %s", self.name, reason)
        self._instruct("renew")

    def inspect(self, needs: list[object], workplace: Workplace) -> int:
        """Instruct the slot to inspect data sets; returns the number of the inspection."""
        given = WORKPLACES.dump_python(workplace, mode="json")
        number = self._instruction.inspection + 1
        self._post(replace(self._instruction, inspection=number, needs=needs, workplace=given))
        return number

    def _instruct(self, do: Command, **given: Any) -> None:
        """Post the next instruction, with the fence and the inspection of the last one."""
        number = self._instruction.number + 1
        self._post(replace(self._instruction, do=do, number=number, **{"attempt": None, "order": None, **given}))

    def _post(self, instruction: Instruction) -> None:
        """Write an instruction; if it cannot be written now, the next refresh writes it."""
        self._instruction, self._posted = instruction, False
        self._write()

    def _write(self) -> None:
        """Write the instruction, unless it is there: an earlier conductor may have overwritten it."""
        with suppress(OSError):
            if self._posted and self._is_written():
                return
            self.mailbox.instruct(self._instruction)
            self._posted = True

    def _is_written(self) -> bool:
        try:
            written, ours = self.mailbox.instruction(), self._instruction
        except DamagedFileError:
            return False
        return (written.fence, written.number, written.inspection) == (ours.fence, ours.number, ours.inspection)


REFRESH_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Ownership:
    """The conductor that slots obey: its installation, the fence of its lease, and the edition of its code."""

    installation: str
    fence: int
    edition: str = ""  # not in the file

    def claim(self, root: Path) -> None:
        """Record which conductor owns the slots under a folder; raises MetricsweepError if another one does."""
        file = root / OWNER
        with suppress(FileNotFoundError):
            try:
                owner = read_as(TypeAdapter(Ownership), file)
            except DamagedFileError as error:
                raise MetricsweepError(
                    f"{error}; if no other installation has its slots there, remove the file"
                ) from error
            if owner.installation != self.installation:
                raise MetricsweepError(
                    f"{root} has the slots of another installation: give each its own METRICSWEEP_STORAGE_URL; or, if "
                    f"its database is gone for good and no slot of it lives, remove {file}"
                )
            if owner.fence > self.fence:
                raise MetricsweepError(
                    f"{root} was last used under lease {owner.fence}, and this conductor holds lease {self.fence}: "
                    f"its database is an older copy. Slots would not obey it; once none of them lives, remove {file}"
                )
        write(file, {"installation": self.installation, "fence": self.fence})


class SlotRegistry:
    """The slots of one installation, which a keeper starts according to the demand.

    A slot is used once it has acknowledged an instruction with our fence. From then on it obeys no earlier conductor,
    whatever that conductor still writes.
    """

    def __init__(self, root: Path, ownership: Ownership) -> None:
        self.root, self.ownership = root, ownership
        ownership.claim(root)
        tidy(root)
        self._slots: dict[str, JoinedSlot] = {}
        self._hosts: dict[str, str] = {}  # by slot, with those that left
        self._removed: set[str] = set()  # slots whose folders may still be there
        self._refreshed = float("-inf")
        self._complete = False

    def __iter__(self) -> Iterator[JoinedSlot]:
        """The slots, with those that are gone and still have an order."""
        return iter(list(self._slots.values()))

    def get(self, name: str) -> JoinedSlot | None:
        """The joined slot of a name, or `None`."""
        return self._slots.get(name)

    def refresh(self) -> None:
        """Read the states of all slots twice a second; raises UnavailableError if the storage does not answer."""
        if time.monotonic() - self._refreshed < REFRESH_SECONDS:
            return
        try:
            found = {mailbox.name: mailbox for mailbox in mailboxes(self.root)}
        except OSError as error:
            raise UnavailableError(f"the storage does not answer: {error}") from error
        if time.monotonic() - self._refreshed > SILENT_SECONDS / 2:  # nobody has read, so the slots were not silent
            for slot in self:
                slot.last_report = time.monotonic()
        self._refreshed = time.monotonic()
        self._removed &= found.keys()
        for name in self._removed:
            found.pop(name).remove()
        for name in sorted(found.keys() - self._slots.keys()):
            self._slots[name] = JoinedSlot(found[name], Instruction(fence=self.ownership.fence))
        for slot in self:
            slot.refresh()
            self._hosts[slot.name] = slot.state.host
            if slot.gone and slot.attempt is None:
                self.give_up(slot)
            elif slot.free and slot.state.replace_reason:
                slot.renew(slot.state.replace_reason)
            elif slot.free and slot.state.edition != self.ownership.edition:
                log.warning("slot %s on %s holds the code of another release, and ends", slot.name, slot.state.host)
                slot.end()

    def complete(self) -> bool:
        """Whether all slots have acknowledged this conductor, so that none obeys an earlier conductor, or are gone."""
        self.refresh()
        self._complete = self._complete or all(slot.acknowledged for slot in self)
        return self._complete

    def nodes(self) -> Sequence[Node]:
        """The slots, each as a node of its own."""
        self.refresh()
        return [slot.node for slot in self if slot.joined]

    def machines(self) -> list[Node]:
        """One slot of each host, which inspects the data root for all of them."""
        self.refresh()
        return list({slot.state.host: slot.node for slot in self if slot.acknowledged and slot.joined}.values())

    def hosts(self, names: Sequence[str]) -> set[str]:
        """The hosts of slots by name, including slots that have left."""
        return {self._hosts[name] for name in names if name in self._hosts}

    def reports(self, seen: Mapping[str, int]) -> Sequence[SlotReport]:
        """The slots with their last states, for clients; `seen` has the recorded messages by attempt."""
        self.refresh()
        return [slot.report(seen) for slot in self if slot.joined]

    def give_up(self, slot: JoinedSlot) -> None:
        """Remove a slot; if it lives, it stops its training once it notices."""
        self._slots.pop(slot.name, None)
        self._removed.add(slot.name)  # a folder that stays would be taken for a new slot, which never answers
        slot.mailbox.remove()


class FilePool(Pool[JoinedSlot]):
    """The slots that joined over a shared folder, as the dispatch uses them."""

    def __init__(self, registry: SlotRegistry, limit: int) -> None:
        super().__init__(limit)
        self._registry = registry
        self._adopting = True  # orders of an earlier run may still come
        for slot in registry:
            slot.forget()

    def nodes(self) -> Sequence[Node]:
        return self._registry.nodes()

    def holding(self, name: str, attempt: str) -> JoinedSlot | None:
        slot = self._registry.get(name)
        if slot is None or slot.gone or not slot.has(attempt):
            return None
        slot.attempt = attempt
        return slot

    def exists(self, name: str) -> bool:
        slot = self._registry.get(name)
        return slot is not None and slot.gone is None

    def take(self, order: Order) -> JoinedSlot | None:
        """Assign an order to the smallest free slot that is large enough and has its data; `None` if none is free."""
        if self._crowded():
            return None
        shape, lacking = shape_of(order.slot, self.nodes()), self._lacking(order)
        fitting = [slot for slot in self._free() if holds(slot.node, (), shape) and slot.state.host not in lacking]
        taken = min(fitting, key=lambda slot: (slot.shape.gpus, slot.shape.cpus, slot.since), default=None)
        if taken is not None:
            taken.attempt = order.attempt
        return taken

    def full(self) -> bool:
        """Whether no order can be taken, since all slots that could train a waiting order are in use."""
        nodes, free = self.nodes(), self._free()
        if self._crowded() or not self._registry.complete():  # a slot may still obey an earlier conductor
            return True
        shapes = [shape_of(slot, nodes) for slot in self._expected if possible(slot, nodes)]
        return not any(holds(slot.node, (), shape) for slot in free for shape in shapes) if shapes else not free

    def unclaimed(self) -> bool:
        """Whether a slot trains an attempt without an order, or orders of an earlier run may still come."""
        return self._registry.complete() and (self._adopting or any(slot.stray for slot in self._registry))

    def reap(self) -> None:
        """Stop attempts without an order, which were cancelled or superseded while no conductor lived."""
        self._adopting = False
        for slot in self._registry:
            if attempt := slot.stray:
                slot.stop(attempt)

    def release(self, slot: JoinedSlot) -> None:
        slot.give_back()

    def replace(self, slot: JoinedSlot, reason: str) -> None:
        slot.give_back()
        slot.renew(reason)

    def lost(self, slot: JoinedSlot) -> None:
        self._registry.give_up(slot)

    def training(self) -> list[Shape]:
        return [slot.shape for slot in self._registry if slot.attempt is not None]

    def _lacking(self, order: Order) -> set[str]:
        """The hosts without the order's data; empty if no other host can train it, so that its training reports it."""
        hosts = self._registry.hosts(order.lacking)
        others = [node for node in self.nodes() if node.host not in hosts]
        return hosts if possible(order.slot, others) else set()

    def _free(self) -> list[JoinedSlot]:
        return [slot for slot in self._registry if slot.free]
