"""The roster: the slots that have joined by files, as they say themselves, and whom they obey."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.run.files.held import JoinedSlot
from orchestrator.run.files.json_file import DamagedFileError, read_as, write
from orchestrator.run.files.post import OWNER, SILENT_SECONDS, Instruction, boxes, tidy
from orchestrator.views.errors import MetricsweepError, UnavailableError
from orchestrator.views.operations import Node, ProcessUsage, SlotReport

log = logging.getLogger(__name__)

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
