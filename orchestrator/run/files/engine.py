"""The engine `files`: slots that join over the storage train, and nothing but files passes between them and us."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Dispatch
from orchestrator.run.engine import Broker, Site
from orchestrator.run.files.demand import DemandFile
from orchestrator.run.files.held import JoinedSlot
from orchestrator.run.files.listening import Listening
from orchestrator.run.files.pool import FilePool
from orchestrator.run.files.post import room
from orchestrator.run.files.roster import Allegiance, Roster
from orchestrator.run.files.slot import FINDINGS, NEEDS
from orchestrator.run.inspection import seen
from orchestrator.spec.axes import Slot
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import MOST_TRAININGS, Inspected, Node, SlotReport, shape_of
from workers.catalog import Finding, Need

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
