"""Why trials wait: no disk space, no node for their slot, no data, or a quota that is used up."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from orchestrator.host import disk
from orchestrator.plan.data import ABSENT, absence, waiting
from orchestrator.plan.points import where
from orchestrator.record.queue import Exclusions
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.spec.spec import Slot, Spec
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.operations import Inspected, Node, possible, shortage
from workers.catalog import Need

DATA_SECONDS: Final = 1.0
"""How often the needs of sweeps are read while nothing changes."""
AGAIN_SECONDS: Final = 10.0
"""How long after an inspection that found nothing the next one is due."""
SHARE: Final = 5
"""An inspection that takes long is repeated after so many times as long."""
SETTLE_SECONDS: Final = 5.0
"""How long a machine must be there, without an active sweep, before it inspects data that nothing needs yet."""
_USUAL_SECONDS: Final = 600.0
"""How often such data are inspected again if absent; and how long their inspection waits while sweeps are active."""

_CAPACITY_SECONDS: Final = 3.0
"""How often the demand is reported while nothing changes."""
_MOST_DEMANDED: Final = 256
TURN_SECONDS: Final = 15.0
"""How long a slot is requested that no node was ever seen to hold; an autoscaler looks every 5 s."""

QUOTA_SECONDS: Final = 5.0
"""How often hours are counted while nothing changes; less often if counting takes long."""
_REST_TIMES: Final = 20.0
WAIT: Final = "its trials wait until hours are free again, or an administrator raises the quota"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Machine:
    node: Node
    since: float
    found: dict[str, Inspected]  # by the key of the need
    looked: float = float("-inf")  # when its last inspection ended
    took: float = 0.0
    looking: frozenset[str] = frozenset()  # the keys that it inspects now
    began: float = 0.0
    begun: dict[str, float] = field(default_factory=dict)  # by key, when the inspection began that found it

    def absent(self, key: str) -> bool:
        return key in self.found and self.found[key].finding.state in ABSENT


class Availability:
    """Tracks which data sets the machines have. A trial whose data no machine has waits, and delays no other."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        engine: Engine,
        usual: Sequence[Need],
    ) -> None:
        self._store, self._writer, self._engine = store, writer, engine
        self._usual = {need.key: need for need in usual}
        self._machines: dict[str, _Machine] = {}
        self._requested: list[tuple[int, Need]] = []
        self._urgent: dict[str, tuple[Need, float]] = {}  # by key, the time since which it must be inspected again
        self._requested_at = float("-inf")
        self.missing_needs: frozenset[str] = frozenset()
        """The keys of the needs that no machine has, or that no machine has inspected yet."""
        self.notices: Mapping[int, list[str]] = {}
        """Why trials wait, by sweep."""

    @property
    def settled(self) -> bool:
        """Whether every machine has inspected all data sets that sweeps need."""
        keys = {need.key for _, need in self._requested}
        machines = self._machines.values()
        looked = all(keys <= machine.found.keys() and not keys & machine.looking for machine in machines)
        return looked and not self._urgent

    def update(self, *, trials_changed: bool = False) -> None:
        """Start inspections that are due and record their results.

        `trials_changed`: trials were added or changed.
        """
        if trials_changed or time.monotonic() - self._requested_at > DATA_SECONDS:
            self._requested, self._requested_at = self._store.data.requested_needs(), time.monotonic()
            self._meet(self._engine.machines())
            for machine in self._machines.values():
                self._begin(machine)
        elif not any(machine.looking for machine in self._machines.values()):
            return
        self._collect()
        self._judge()

    def request_inspections(self, needs: Iterable[tuple[Need, float]]) -> None:
        """Have every machine inspect these data sets, each at the given time or later."""
        self._urgent = {}
        for need, since in needs:
            _, known = self._urgent.get(need.key, (need, since))
            self._urgent[need.key] = need, max(known, since)

    def seen_since(self, keys: Collection[str], since: float) -> list[Inspected] | None:
        """The inspection results of all machines since a time; `None` while one is missing."""
        found = []
        for machine in self._machines.values():
            if any(machine.begun.get(key, float("-inf")) < since for key in keys):
                return None
            found += [machine.found[key] for key in keys]
        return found

    def lacking(self, key: str | None) -> tuple[str, ...]:
        """The machines on which a training that reads this data set must not begin."""
        if key is None:
            return ()
        machines = self._machines.items()
        return tuple(uid for uid, machine in machines if key not in machine.found or machine.absent(key))

    def doubt(self, key: str | None) -> None:
        """Forget the inspection results of a data set, after a training found it missing or damaged."""
        for machine in self._machines.values():
            if key is not None:
                machine.found.pop(key, None)
                machine.begun.pop(key, None)
        self._requested_at = float("-inf")

    def _meet(self, machines: Sequence[Node]) -> None:
        """Update the machines; the findings of those that left are kept until another machine is there."""
        now, known = time.monotonic(), self._machines
        self._machines = {node.uid: known.get(node.uid) or _Machine(node, now, {}) for node in machines}
        if self._machines and not known.keys() <= self._machines.keys():
            self._writer.data.note_findings([], list(self._machines))

    def _begin(self, machine: _Machine) -> None:
        """Have a machine inspect what sweeps need, or otherwise what they usually need."""
        if machine.looking:
            return

        def due(needs: Mapping[str, Need], pause: float) -> dict[str, Need]:
            again = time.monotonic() - machine.looked >= pause
            absent = (key for key in needs if key not in machine.found or (again and machine.absent(key)))
            return {key: needs[key] for key in absent}

        needed = due({need.key: need for _, need in self._requested}, max(AGAIN_SECONDS, SHARE * machine.took))
        urgent = self._urgent.items()
        needed |= {key: need for key, (need, since) in urgent if machine.begun.get(key, float("-inf")) < since}
        if not needed:  # it takes CPU time from trainings to inspect what nothing needs yet
            settled_in = _USUAL_SECONDS if self._store.sweeps.active() else SETTLE_SECONDS
            needed = due(self._usual, _USUAL_SECONDS) if time.monotonic() - machine.since > settled_in else {}
        if needed:
            machine.looking, machine.began = frozenset(needed), time.monotonic()
            self._engine.inspect(machine.node, list(needed.values()))

    def _collect(self) -> None:
        found = [inspected for inspected in self._engine.inspected() if inspected.node in self._machines]
        for inspected in found:
            machine, key = self._machines[inspected.node], inspected.need.key
            machine.found[key] = inspected
            machine.begun[key] = machine.began
            machine.looking -= {key}
            machine.looked, machine.took = time.monotonic(), time.monotonic() - machine.began
        if found:
            self._writer.data.note_findings(found, list(self._machines))

    def _judge(self) -> None:
        """Find the needs that no machine has, and the notices of their sweeps."""
        machines, notices = self._machines.values(), dict[int, list[str]]()
        missing_needs = set()
        for sweep, need in self._requested:
            key = need.key
            seen = [machine.found[key] for machine in machines if key in machine.found]
            if not machines or any(entry.finding.state not in ABSENT for entry in seen):
                continue
            missing_needs.add(key)
            notice = absence(need, seen) if len(seen) == len(machines) else None
            if notice and self._store.data.waiting_for(sweep, key):
                notices.setdefault(sweep, []).append(notice)
        self.missing_needs, self.notices = frozenset(missing_needs), notices


class WaitReasons:
    """Determines which trainings the conductor must not begin now, and records why sweeps wait."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        engine: Engine,
        availability: Availability,
        quota: int | None,
        racing: Callable[[], Mapping[int, int]],
        places: Mapping[str, Path],
    ) -> None:
        self._store, self._writer, self._racing, self._places = store, writer, racing, places
        self.full: Mapping[str, str] = {}
        """What is wrong with the disks, by place; meanwhile nothing new is written or begun."""
        self._capacity = Capacity(store, writer, engine, quota)
        self._availability = availability
        self._limits, self._next_count = UNLIMITED, float("-inf")  # of quotas
        self._hours: dict[int, list[str]] = {}  # by sweep, why its trials wait for hours
        self._noted: dict[int, str] | None = None  # `None`: an earlier conductor's notices, which are not known

    @property
    def stuck(self) -> bool:
        """Whether all waiting trainings are blocked, so that none can be claimed."""
        limits = self._limits
        if not (self.full or self._capacity.impossible_slots or self._availability.missing_needs or limits.spent):
            return False
        # A slot of a quota becomes free like any other slot: only hours count here.
        return not self._store.claims.waits(replace(self.exclusions, limits=QuotaLimits(spent=limits.spent)))

    @property
    def exclusions(self) -> Exclusions:
        """The trainings that must not be claimed now."""
        return Exclusions(
            impossible_slots=self._capacity.impossible_slots,
            missing_needs=self._availability.missing_needs,
            racing=self._racing(),
            limits=self._limits,
            everything=bool(self.full),
        )

    @property
    def hopeless(self) -> bool:
        """Whether all waiting trainings stay blocked until a person acts."""
        return self.stuck and (bool(self.full) or self._availability.settled)

    def check_disks(self) -> None:
        """Check the disks: while one has too little room, no training begins."""
        full = disk.troubles(self._places)
        if full.keys() == self.full.keys():
            return  # the free bytes change all the time, and a notice is written to the database
        if full:
            log.warning("%s", disk.wait_reason(full))
        else:
            log.info("the disks have room again; going on")
        self.full = full

    def update(self, *, trials_changed: bool = False) -> None:
        """Update all wait reasons and each sweep's notice.

        `trials_changed`: trials were added or changed.
        """
        self._availability.update(trials_changed=trials_changed)
        if trials_changed or time.monotonic() > self._next_count:
            self._count_quotas()
        self._capacity.update(self._availability.missing_needs, self._limits, trials_changed=trials_changed)
        lines: dict[int, list[str]] = {}
        full = (
            {number: [disk.wait_reason(self.full)] for number in self._store.sweeps.going(queued=True)}
            if self.full
            else {}
        )
        for notices in (full, self._capacity.notices or {}, self._availability.notices, self._hours):
            for sweep, reasons in notices.items():
                lines.setdefault(sweep, []).extend(reasons)
        noted = {sweep: "\n".join(reasons) for sweep, reasons in lines.items()}
        if noted != self._noted:
            self._writer.capacity.note_notices(noted)
            self._noted = noted

    def _count_quotas(self) -> None:
        # A used-up number of slots gives no notice, since trainings end soon.
        began = time.monotonic()
        state = self._store.quotas.state()
        took = time.monotonic() - began
        self._limits, self._next_count = state.limits, began + max(QUOTA_SECONDS, _REST_TIMES * took)
        self._hours = {
            number: [f"{reason}; {WAIT}" for reason in reasons]
            for number, reasons in state.reasons.items()
            if self._store.claims.waits_of(number, state.limits.spent[number])
        }


class Capacity:
    """Tracks which slots the cluster can hold. A trial whose slot no node can hold waits, and delays no other."""

    def __init__(self, store: Store, writer: Writer, engine: Engine, quota: int | None) -> None:
        self._store, self._writer, self._engine, self._quota = store, writer, engine, quota
        self._began = time.monotonic()
        self._alive: list[Node] | None = None
        self.notices: dict[int, list[str]] | None = None
        """Why trials wait, by sweep; `None` before the first look."""
        self._looked = float("-inf")
        self.impossible_slots: frozenset[str] = frozenset()
        """The slots that no present node can hold, as JSON of the database."""

    def update(self, missing_needs: Collection[str], limits: QuotaLimits, *, trials_changed: bool = False) -> None:
        """Record changes of the cluster and report the demand for slots.

        What waits for data (`missing_needs`) or for quotas (the `limits`) demands no nodes.
        """
        nodes = self._engine.nodes()
        alive = None if nodes is None else sorted(nodes, key=lambda node: node.uid)
        changed = alive != self._alive or self.notices is None
        due = time.monotonic() - self._looked > _CAPACITY_SECONDS
        if not (changed or trials_changed or due):
            return
        self._looked = time.monotonic()
        if alive is None:
            self.impossible_slots = frozenset()
        elif changed:
            self._writer.capacity.note_nodes(alive)
        self._alive = alive
        if changed or trials_changed or self.notices:
            self._judge()
        if alive is not None:
            self._engine.demand(self._demanded(missing_needs, limits))

    def _demanded(self, missing_needs: Collection[str], limits: QuotaLimits) -> list[Slot]:
        """The waiting slots; of those that no node was ever seen to hold, one kind at a time, with pauses between.

        Ray's autoscaler v2 starts nothing while one of the slots fits none of its kinds of nodes.
        """
        waiting = self._store.capacity.waiting_slots(_MOST_DEMANDED, self._quota, missing_needs, limits)
        seen = self._store.capacity.nodes()
        kinds = {slot.model_dump_json(): slot for slot in waiting}
        unknown = [name for name, slot in kinds.items() if not possible(slot, seen)]
        turn, mixed = int((time.monotonic() - self._began) / TURN_SECONDS), len(unknown) < len(kinds)
        left_out = set(unknown)
        if unknown and not (mixed and turn % 2):
            left_out.remove(unknown[(turn // 2 if mixed else turn) % len(unknown)])
        return [slot for slot in waiting if slot.model_dump_json() not in left_out]

    def _judge(self) -> None:
        """Find the slots that no node can hold, and the notices of their sweeps."""
        notices: dict[int, list[str]] = {}
        if self._alive is not None:
            requested = self._store.capacity.requested_slots()
            self.impossible_slots = frozenset(
                asked_slot.text for asked_slot in requested if not possible(asked_slot.slot, self._alive)
            )
            seen = self._store.capacity.nodes()
            for asked_slot in requested:
                # No notice for a slot that a node of the past could hold: such a node may come back.
                reason = shortage(asked_slot.slot, seen) if asked_slot.text in self.impossible_slots else None
                labels = self._store.capacity.waiting_labels(asked_slot) if reason else None
                if reason and labels is not None:
                    which = ""
                    if asked_slot.own:
                        spec = Spec.model_validate(self._store.sweeps.get(asked_slot.sweep).spec)
                        which = where(spec, labels)
                    notices.setdefault(asked_slot.sweep, []).append(f"{reason}; {waiting(which)}")
        self.notices = notices
