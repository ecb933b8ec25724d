"""The engine `files`: slots that join through the storage alone."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from orchestrator.run.attempt import INSPECTION_SECONDS, Inspection, Workplace, results
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Broker, Engine, Site
from orchestrator.run.files.pool import FilePool, JoinedSlot, Ownership, SlotRegistry
from orchestrator.run.files.slot import DEMAND, FINDINGS, NEEDS, slots_folder, write
from orchestrator.run.spool import FILE, Message, attempt_folder
from orchestrator.spec.spec import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, Shape, SlotReport, shape_of
from workers.catalog import Finding, Need

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 15.0  # how often the demand is written while it does not change
QUIET_SECONDS: Final = 10.0
"""How long the end of an attempt may be missing in the spool after its slot has stopped training it."""


class FileSlots(Engine):
    """The engine for slots that something else starts, such as Slurm, and that join over a shared folder."""

    def __init__(self, workplace: Workplace, limit: int | None) -> None:
        self._workplace = workplace
        self._limit = min(limit or MOST_TRAININGS, MOST_TRAININGS)
        self._registry: SlotRegistry | None = None
        self._pool: FilePool | None = None
        self._dispatch: Dispatch[JoinedSlot] | None = None
        self._demand: DemandFile | None = None
        self._inspections: list[Inspection] = []

    def run(self, broker: Broker) -> None:
        registry = self._joined(broker)
        self._pool = FilePool(registry, self._limit)
        self._dispatch = Dispatch(broker, self._pool, self._workplace)
        listening = Listening(registry.root.parent)
        self._dispatch.serve(listening.follow, listening.reports)

    def nodes(self) -> Sequence[Node]:
        """The slots that have joined, each as a node of its own."""
        return [] if self._registry is None else self._registry.nodes()

    def slots(self) -> Sequence[SlotReport]:
        seen = {} if self._dispatch is None else self._dispatch.seen
        return [] if self._registry is None else self._registry.reports(seen)

    def machines(self) -> Sequence[Node]:
        """One joined slot of each host, which inspects data for all of them."""
        return [] if self._registry is None or self._workplace.inspect is None else self._registry.machines()

    def inspect(self, machine: Node, needs: Sequence[Need]) -> None:
        """Make the slot of a machine inspect the data sets in its data folder."""
        slot = self._registry.get(machine.uid) if self._registry is not None else None
        if slot is not None:
            number = slot.inspect(NEEDS.dump_python(list(needs), mode="json"), self._workplace)
            answered, findings = partial(_answered, slot, number), partial(_findings, slot, number)
            self._inspections.append(Inspection(machine, needs, answered, findings))

    def inspected(self) -> Sequence[Inspected]:
        if self._registry is not None:
            self._registry.refresh()
        return results(self._inspections)

    def demand(self, waiting: Sequence[Slot]) -> None:
        """Write which slots train and are waited for into a file, from which a keeper starts slots."""
        if self._registry is None or self._demand is None:
            return
        if self._pool is not None:
            self._pool.expect(waiting)
        held = self._dispatch.claimed if self._dispatch is not None else None
        needed = [*([] if held is None else [held.slot]), *waiting]
        training, nodes = [] if self._pool is None else self._pool.training(), self._registry.nodes()
        left = max(0, self._limit - len(training))
        self._demand.write(training, [shape_of(slot, nodes) for slot in needed[:left]])

    def rest(self, broker: Broker) -> None:
        """Accept slots that join, and stop attempts without an order."""
        registry = self._joined(broker)
        if registry.complete():
            FilePool(registry, self._limit).reap()

    def leave(self) -> None:
        """Do nothing: slots waited in a queue, and leave by themselves after being idle for long."""

    def close(self) -> None:
        """Do nothing: slots continue by themselves."""

    def _joined(self, broker: Broker) -> SlotRegistry:
        if self._registry is None or self._registry.ownership.fence != broker.fence():
            ownership = Ownership(broker.installation(), broker.fence(), self._workplace.edition)
            try:
                self._registry = SlotRegistry(slots_folder(self._workplace.storage), ownership)
            except OSError as error:
                raise UnavailableError(f"the storage does not answer: {error}") from error
            self._demand = DemandFile(self._registry.root)
        return self._registry


def engine(site: Site) -> FileSlots:
    """Make the engine `files` for an installation."""
    return FileSlots(site.workplace, site.slots)


class DemandFile:
    """Writes the file with the demand for slots, from which `DemandReader` reads."""

    def __init__(self, root: Path) -> None:
        self._file = root / DEMAND
        self._written: Any = None
        self._at, self._beat = float("-inf"), 0

    def write(self, training: Sequence[Shape], waiting: Sequence[Shape]) -> None:
        """Write the demand for slots if it has changed or is old; after an error, the next call writes it."""
        demand = {"training": [shape.bundle for shape in training], "waiting": [shape.bundle for shape in waiting]}
        if demand == self._written and time.monotonic() - self._at < AGAIN_SECONDS:
            return
        self._beat += 1
        try:
            write(self._file, {**demand, "beat": [time.time(), self._beat]})
        except OSError as error:
            log.warning("the demand for slots cannot be written: %s", error)
            return
        self._written, self._at = demand, time.monotonic()


def _answered(slot: JoinedSlot, number: int) -> bool:
    return slot.gone is not None or slot.state.inspected >= number


def _findings(slot: JoinedSlot, number: int) -> list[Finding]:
    """What an inspection has found; raises an error if it failed or has not ended."""
    state = slot.state
    if state.inspected < number:
        raise TimeoutError(f"the slot {slot.name} did not answer within {INSPECTION_SECONDS:g} s")
    if state.problem is not None:
        raise RuntimeError(state.problem)
    return FINDINGS.validate_python(state.found)


@dataclass(slots=True)
class _Followed:
    """An attempt whose spool is read."""

    execution: Execution[JoinedSlot]
    file: Path
    offset: int = 0  # of the first line that was not read yet
    there: bool = False  # its host was reported
    quiet: float | None = None  # the time since when its slot does not train it
    ended: bool = False


class Listening:
    """Reads the spools of running attempts, which hold their messages."""

    def __init__(self, storage: Path) -> None:
        self._storage = storage
        self._followed: dict[str, _Followed] = {}

    def follow(self, execution: Execution[JoinedSlot]) -> None:
        """Begin to read the spool of an attempt."""
        file = self._storage / attempt_folder(execution.order) / FILE
        self._followed[execution.order.attempt] = _Followed(execution, file)

    def reports(self, wait: float) -> Iterator[Report]:
        """The news of all followed attempts since the last call, after `wait` seconds."""
        time.sleep(wait)
        for attempt, followed in list(self._followed.items()):
            for report in self._of(attempt, followed):
                if report.lost or followed.ended:
                    self._followed.pop(attempt, None)
                yield report

    def _of(self, attempt: str, followed: _Followed) -> Iterator[Report]:
        slot = followed.execution.slot
        state, gone = slot.state, slot.gone  # taken before the spool is read, which then has all that the slot wrote
        mine = state.attempt == attempt
        host = state.host if mine and not followed.there else None
        followed.there = followed.there or mine
        lines = _new_lines(followed)
        followed.ended = bool(lines) and Message.of(lines[-1]).final
        if lines or host:
            yield Report(attempt, lines, host, replace_reason=state.replace_reason if mine and not state.busy else None)
        if lines:
            followed.quiet = None
        elif gone:
            yield Report(attempt, lost=gone)
        elif slot.acknowledged and not (mine and state.busy):
            yield from self._silent(attempt, followed, mine)

    def _silent(self, attempt: str, followed: _Followed, mine: bool) -> Iterator[Report]:
        """The slot does not train the attempt, whose spool has no end: the slot has failed, or its disk is full."""
        followed.quiet = time.monotonic() if followed.quiet is None else followed.quiet
        last = _failure(followed) if mine else None
        if last is not None:
            followed.ended = True
            yield Report(attempt, (last,))
        elif time.monotonic() - followed.quiet > QUIET_SECONDS:
            yield Report(attempt, lost="it ended without a message" if mine else "it does not train its order")


def _new_lines(followed: _Followed) -> list[bytes]:
    """The whole lines after those that were read; empty if the storage does not answer now."""
    try:
        with followed.file.open("rb") as file:
            size = file.seek(0, 2)
            followed.offset = 0 if size < followed.offset else followed.offset  # only unread lines are ever cut off
            file.seek(followed.offset)
            content = file.read()
    except OSError:
        return []
    lines: list[bytes] = []
    for line in content.splitlines(keepends=True):
        try:
            Message.of(line)
        except ValueError:
            break
        lines.append(line)
        followed.offset += len(line)
    return lines


def _failure(followed: _Followed) -> bytes | None:
    """The failure that its slot reports and no spool has, as the next message of the attempt, or `None`."""
    line, number = followed.execution.slot.state.last, followed.execution.seen + 1
    try:
        last = Message.of((line or "").encode())
        return Message.made(number, last.kind, last.body).line if last.seq < number else last.line
    except ValueError:
        return None
