"""The engine `files`: slots that join through the storage alone."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from orchestrator.run.attempt import Workplace, seen
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Broker, Site
from orchestrator.run.files.pool import Allegiance, FilePool, JoinedSlot, Roster
from orchestrator.run.files.slot import DEMAND, FINDINGS, NEEDS, read_as, room, write
from orchestrator.run.spool import FILE, Message, attempt_folder
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, Shape, SlotReport, holds, shape_of
from workers.catalog import Finding, Need

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 15.0
STALE_SECONDS: Final = 90.0
"""Where it is not renewed for so long, no conductor is there."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What stands in the file: bundles of resources, and a number that grows with each writing beside its time."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    training: list[dict[str, float]]
    waiting: list[dict[str, float]]
    beat: tuple[float, int]


_READER: Final = TypeAdapter(_Told)


class DemandFile:
    """The conductor's side."""

    def __init__(self, room: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file, self._now = room / DEMAND, now
        self._told: Any = None
        self._at, self._beat = float("-inf"), 0

    def tell(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Write it, where it changed or is to be renewed; where the storage does not take it, at the next look."""
        said = {"training": [one.bundle for one in training], "waiting": [one.bundle for one in waiting]}
        if said == self._told and self._now() - self._at < AGAIN_SECONDS:
            return
        self._beat += 1
        try:
            write(self._file, {**said, "beat": [time.time(), self._beat]})
        except OSError as error:
            log.warning("the demand for slots cannot be written: %s", error)
            return
        self._told, self._at = said, self._now()


class Demanded:
    """The side of whoever starts slots."""

    def __init__(self, room: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._file, self._now = room / DEMAND, now
        self._beat: Any = None
        self._changed = float("-inf")

    def slots(self, offer: Mapping[str, float]) -> int | None:
        """How many slots that offer so much there is use for; none: no conductor tells."""
        try:
            said = read_as(_READER, self._file)
        except OSError:
            return None
        if said.beat != self._beat:
            first = self._beat is None  # it may have been written long ago
            self._beat, self._changed = said.beat, self._now() if not first else self._changed
            if first:
                self._changed = self._now() if time.time() - said.beat[0] < STALE_SECONDS else self._changed
        if self._now() - self._changed > STALE_SECONDS:
            return None
        node = Node("", "", offer)
        return sum(holds(node, (), _shape(bundle)) for bundle in (*said.training, *said.waiting))


def _shape(bundle: Mapping[str, float]) -> Shape:
    custom = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU", "memory")}
    named = (bundle.get("CPU", 0.0), bundle.get("GPU", 0.0), int(bundle.get("memory", 0)))
    return Shape(*named, tuple(sorted(custom.items())))


QUIET_SECONDS: Final = 10.0
"""How long the end of an attempt may be missing in the spool once its slot trains it no more."""
MOST_BYTES: Final = 4 * 2**20
"""Of one spool in one turn, but for a line that is longer; the rest comes in the next ones."""


@dataclass(slots=True)
class _Heard:
    """One attempt that is listened to."""

    execution: Execution[JoinedSlot]
    file: Path
    offset: int = 0  # of the first line that was not read yet
    there: bool = False  # its host was told
    quiet: float | None = None  # since when its slot trains it no more
    ended: bool = field(default=False)


class Listening:
    """The attempts that are listened to.

    A spool is the one way by which messages come, and it is read from where it was left.
    """

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self._heard: dict[str, _Heard] = {}

    def follow(self, execution: Execution[JoinedSlot]) -> None:
        """Listen to one more."""
        file = self._storage / attempt_folder(execution.order) / FILE
        self._heard[execution.order.attempt] = _Heard(execution, file)

    def reports(self) -> Iterator[Report]:
        """What has come since."""
        for attempt, heard in list(self._heard.items()):
            for report in self._of(attempt, heard):
                if report.lost or heard.ended:
                    self._heard.pop(attempt, None)
                yield report

    def _of(self, attempt: str, heard: _Heard) -> Iterator[Report]:
        slot = heard.execution.slot
        state, gone = slot.state, slot.gone  # before the spool is read: what it wrote before it left is all there
        mine = state.attempt == attempt
        host = state.host if mine and not heard.there else None
        heard.there = heard.there or mine
        lines = _new_lines(heard)
        last = Message.of(lines[-1]) if lines else None
        heard.ended = last is not None and last.final
        if lines or host:
            yield Report(attempt, lines, host, worn=state.worn if mine and not state.busy else None)
        if heard.ended or len(lines) > 0:
            heard.quiet = None
            return
        if gone:
            yield Report(attempt, lost=gone)
        elif slot.answers and not (mine and state.busy):
            yield from self._silent(attempt, heard, mine)

    def _silent(self, attempt: str, heard: _Heard, mine: bool) -> Iterator[Report]:
        """Its slot trains it no more, and the spool has no end of it: the slot has failed, or its disk is full."""
        heard.quiet = time.monotonic() if heard.quiet is None else heard.quiet
        last = _failure(heard) if mine else None
        if last is not None:
            heard.ended = True
            yield Report(attempt, (last,))
        elif time.monotonic() - heard.quiet > QUIET_SECONDS:
            yield Report(attempt, lost="it ended without a word" if mine else "it does not train what it was given")


def _new_lines(heard: _Heard) -> list[bytes]:
    """The whole lines after those that were read; none where the storage does not answer now."""
    try:
        with heard.file.open("rb") as file:
            size = file.seek(0, 2)
            heard.offset = 0 if size < heard.offset else heard.offset  # a line that was cut off was none of these
            file.seek(heard.offset)
            content = file.read(MOST_BYTES)
            while b"\n" not in content and (more := file.read(MOST_BYTES)):
                content += more
    except OSError:
        return []
    lines: list[bytes] = []
    for line in content.splitlines(keepends=True):
        try:
            Message.of(line)
        except ValueError:
            break
        lines.append(line)
        heard.offset += len(line)
    return lines


def _failure(heard: _Heard) -> bytes | None:
    """The failure that its slot tells and no spool has, as the next message of its attempt; none: it tells none."""
    line, number = heard.execution.slot.state.last, heard.execution.seen + 1
    try:
        told = Message.of((line or "").encode())
        return Message.made(number, told.kind, told.body).line if told.seq < number else told.line
    except ValueError:
        return None


TURN_SECONDS: Final = 0.25
WATCH_SECONDS: Final = 0.5
LINGER_SECONDS: Final = 60.0
"""How long it goes on while nothing trains and nothing can be given out."""
PATIENCE_SECONDS: Final = 120.0
"""An inspection that takes longer is given up; a training then says itself what it lacks."""


@dataclass(frozen=True, slots=True)
class _Inspection:
    machine: Node
    slot: JoinedSlot
    number: int
    needs: Sequence[Need]
    began: float


class FileSlots:
    """Runs orders on slots that others keep alive, as Slurm does."""

    def __init__(self, workplace: Workplace, limit: int | None, linger: float) -> None:
        self._workplace, self._linger = workplace, linger
        self._limit = min(limit or MOST_TRAININGS, MOST_TRAININGS)
        self._roster: Roster | None = None
        self._pool: FilePool | None = None
        self._dispatch: Dispatch[JoinedSlot] | None = None
        self._demand: DemandFile | None = None
        self._inspections: list[_Inspection] = []

    def run(self, broker: Broker) -> None:
        """Execute orders until there have been none for a while, or the broker is closing."""
        roster = self._joined(broker)
        self._pool = FilePool(roster, self._limit)
        dispatch = self._dispatch = Dispatch(broker, self._pool, self._workplace)
        listening = Listening(roster.room.parent)
        busy = watched = time.monotonic()
        while not broker.closing():
            broker.tick()
            roster.refresh()
            if roster.mustered():
                for execution in dispatch.begun():
                    listening.follow(execution)
            now = time.monotonic()
            if dispatch.busy() or roster.settling():
                busy = now
            elif now - busy >= self._linger:
                return
            for report in listening.reports():
                dispatch.take(report)
            if now - watched > WATCH_SECONDS:
                watched = now
                dispatch.watch()
            time.sleep(TURN_SECONDS)

    def nodes(self) -> Sequence[Node]:
        """The slots that have joined, each as a node."""
        return [] if self._roster is None else self._roster.nodes()

    def slots(self) -> Sequence[SlotReport]:
        """The slots that have joined."""
        seen_by = {} if self._dispatch is None else self._dispatch.seen
        return [] if self._roster is None else self._roster.look(seen_by)

    def machines(self) -> Sequence[Node]:
        """One slot of each host."""
        return [] if self._roster is None or self._workplace.inspect is None else self._roster.machines()

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Ask that slot to look."""
        slot = self._roster.get(machine.uid) if self._roster is not None else None
        if slot is not None:
            number = slot.inspect(NEEDS.dump_python(list(needs), mode="json"), self._workplace)
            self._inspections.append(_Inspection(machine, slot, number, needs, time.monotonic()))

    def inspected(self) -> Sequence[Inspected]:
        """What slots have found since this was asked last."""
        if self._roster is not None:
            self._roster.refresh()
        found: list[Inspected] = []
        for one in list(self._inspections):
            late = one.slot.gone is not None or time.monotonic() - one.began > PATIENCE_SECONDS
            if late or one.slot.state.looked >= one.number:
                self._inspections.remove(one)
                found += seen(one.machine, one.needs, lambda one=one: _found(one))  # type: ignore[misc]
        return found

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Write what trains and what is waited for, for whoever starts slots."""
        if self._roster is None or self._demand is None:
            return
        if self._pool is not None:
            self._pool.expect(waiting)
        held = self._dispatch.held if self._dispatch is not None else None
        wanted = [*([] if held is None else [held.slot]), *waiting]
        training, nodes = [] if self._pool is None else self._pool.training(), self._roster.nodes()
        left = max(0, self._limit - len(training))
        self._demand.tell(training, [shape_of(slot, nodes) for slot in wanted[:left]])

    def rest(self, broker: Broker) -> None:
        """While there is nothing to run: greet who joins, and stop what nobody wants."""
        roster = self._joined(broker)
        if roster.mustered():
            FilePool(roster, self._limit).reap()

    def leave(self) -> None:
        """Nothing: a slot was waited for in a queue, and leaves by itself once nothing has come for long."""

    def close(self) -> None:
        """Nothing is held."""

    def _joined(self, broker: Broker) -> Roster:
        """The slots under this lease."""
        if self._roster is None or self._roster.allegiance.fence != broker.fence():
            allegiance = Allegiance(broker.installation(), broker.fence(), self._workplace.edition)
            try:
                self._roster = Roster(room(self._workplace.storage), allegiance)
            except OSError as error:
                raise UnavailableError(f"the storage does not answer: {error}") from error
            self._demand = DemandFile(self._roster.room)
        return self._roster


def _found(one: _Inspection) -> list[Finding]:
    """What an inspection found; raises what kept it from finding anything."""
    state = one.slot.state
    if state.looked < one.number:
        raise TimeoutError(f"it did not answer within {PATIENCE_SECONDS:g} s")
    if state.problem is not None:
        raise RuntimeError(state.problem)
    return FINDINGS.validate_python(state.found)


def engine(site: Site) -> FileSlots:
    """The engine `files`."""
    return FileSlots(site.workplace, site.slots, LINGER_SECONDS)
