"""Why trials wait: no disk space, no node for their slot, no data, or a quota that is used up."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from orchestrator.host import disk
from orchestrator.plan.data import ABSENT, absence, waiting
from orchestrator.plan.parse import where
from orchestrator.record.capacity import AskedNeed, AskedSlot, Counted
from orchestrator.record.queue import Exclusions
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.spec.axes import Slot
from orchestrator.spec.spec import Spec
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.operations import Inspected, Node, possible, shortage
from orchestrator.views.runs import Failure, Labels, Order
from workers.catalog import Need

DATA_SECONDS: Final = 1.0
"""How often it is asked which sweeps need what, while nothing else happens."""
AGAIN_SECONDS: Final = 10.0
"""How long after a look that found nothing the next one is due."""
SHARE: Final = 5
"""A look that takes long is repeated after so many times as long."""
SETTLE_SECONDS: Final = 5.0
"""How long a machine is there, and no sweep goes on, before it looks for what nobody has asked for yet."""
USUAL_SECONDS: Final = 600.0
"""How often it looks for that again, as long as it was not there; and how long it does not while a sweep goes on."""


@dataclass(slots=True)
class _Machine:
    """What is known of one machine."""

    node: Node
    since: float
    found: dict[str, Inspected]  # by the key of the need
    looked: float = float("-inf")  # when its last look ended
    took: float = 0.0
    looking: frozenset[str] = frozenset()  # what it looks at now
    began: float = 0.0
    begun: dict[str, float] = field(default_factory=dict)  # when the look began that found a key

    def absent(self, key: str) -> bool:
        """Whether it was seen not to have it."""
        return key in self.found and self.found[key].finding.state in ABSENT


class Availability:
    """The conductor's view of the data roots. A trial whose data no machine has waits, and holds up no other."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        engine: Engine,
        usual: Sequence[Need],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._writer, self._engine, self._now = store, writer, engine, now
        self._usual = {one.key: one for one in usual}
        self._machines: dict[str, _Machine] = {}
        self._asked: list[AskedNeed] = []
        self._urgent: dict[str, tuple[Need, float]] = {}  # by key, since when it is to be looked for anew
        self._asked_at = self._busy_at = float("-inf")
        self.held: frozenset[str] = frozenset()
        """The keys of the needs that no machine has, or that none has looked for yet."""
        self.notices: Mapping[int, list[str]] = {}
        """Why trials wait, by sweep."""

    @property
    def settled(self) -> bool:
        """Whether every machine has looked for all that is asked."""
        keys = {one.need.key for one in self._asked}
        looked = all(keys <= one.found.keys() and not keys & one.looking for one in self._machines.values())
        return looked and not self._urgent

    def look(self, *, anew: bool = False) -> None:
        """Have machines look where that is due, and note what they found; `anew`: trials were added or changed."""
        if anew or self._now() - self._asked_at > DATA_SECONDS:
            self._asked, self._asked_at = self._store.data.asked_needs(), self._now()
            self._meet(self._engine.machines())
            for machine in self._machines.values():
                self._begin(machine)
        elif not any(machine.looking for machine in self._machines.values()):
            return
        self._hear()
        self._judge()

    def ask(self, needs: Iterable[tuple[Need, float]]) -> None:
        """Have every machine look for these needs in a look that begins at that time or later."""
        self._urgent = {}
        for one, since in needs:
            _, known = self._urgent.get(one.key, (one, since))
            self._urgent[one.key] = one, max(known, since)

    def seen_since(self, keys: Collection[str], since: float) -> list[Inspected] | None:
        """What all machines found of some needs in looks that began since then; None while one has not looked yet."""
        found = []
        for machine in self._machines.values():
            if any(machine.begun.get(key, float("-inf")) < since for key in keys):
                return None
            found += [machine.found[key] for key in keys]
        return found

    def lacking(self, key: str | None) -> tuple[str, ...]:
        """The machines on which a training with this need is not to be begun."""
        if key is None:
            return ()
        return tuple(uid for uid, one in self._machines.items() if key not in one.found or one.absent(key))

    def doubt(self, key: str | None) -> None:
        """A training found otherwise: every machine is to look for it once more."""
        for machine in self._machines.values():
            if key is not None:
                machine.found.pop(key, None)
                machine.begun.pop(key, None)
        self._asked_at = float("-inf")

    def _meet(self, machines: Sequence[Node]) -> None:
        """Note which machines there are now; those that left are forgotten once another one is there."""
        now, known = self._now(), self._machines
        self._machines = {one.uid: known.get(one.uid) or _Machine(one, now, {}) for one in machines}
        if self._machines and not known.keys() <= self._machines.keys():
            self._writer.data.note_findings([], list(self._machines))

    def _begin(self, machine: _Machine) -> None:
        """Have a machine look for what it is asked for, and else for what may be asked."""
        if machine.looking:
            return
        asked = {one.need.key: one.need for one in self._asked}
        due = self._now() - machine.looked >= max(AGAIN_SECONDS, SHARE * machine.took)
        self._take_over(machine, asked)
        wanted = {key: one for key, one in asked.items() if key not in machine.found or (due and machine.absent(key))}
        wanted |= {
            key: one for key, (one, since) in self._urgent.items() if machine.begun.get(key, float("-inf")) < since
        }
        if not wanted and self._settled_in(machine):
            again = self._now() - machine.looked >= USUAL_SECONDS
            wanted = {
                key: one
                for key, one in self._usual.items()
                if key not in machine.found or (again and machine.absent(key))
            }
        if wanted:
            machine.looking, machine.began = frozenset(wanted), self._now()
            self._engine.inspect(machine.node, list(wanted.values()))

    def _take_over(self, machine: _Machine, asked: Mapping[str, Need]) -> None:
        """Of what a sweep was planned with just now the machine has said already whether it has it."""
        for key, need in asked.items():
            whole = machine.found.get(need.model_copy(update={"content": {}}).key) if need.content else None
            if key not in machine.found and whole is not None and need.content.items() <= whole.finding.content.items():
                machine.found[key] = replace(whole, need=need)

    def _settled_in(self, machine: _Machine) -> bool:
        """Whether it may look for what nobody has asked for, which takes seconds of the cores that train."""
        here = self._now() - machine.since
        if here > SETTLE_SECONDS and self._store.sweeps.active():
            self._busy_at = self._now()
        return here > USUAL_SECONDS or min(here, self._now() - self._busy_at) > SETTLE_SECONDS

    def _hear(self) -> None:
        """Take what was found."""
        found = [one for one in self._engine.inspected() if one.node in self._machines]
        for one in found:
            machine = self._machines[one.node]
            machine.found[one.need.key] = one
            machine.begun[one.need.key] = machine.began
            machine.looking -= {one.need.key}
            machine.looked, machine.took = self._now(), self._now() - machine.began
        if found:
            self._writer.data.note_findings(found, list(self._machines))

    def _judge(self) -> None:
        """Which needs have to wait, and what their sweeps say of it."""
        machines, notices = self._machines.values(), dict[int, list[str]]()
        held = set()
        for asked in self._asked:
            key = asked.need.key
            seen = [machine.found[key] for machine in machines if key in machine.found]
            if not machines or any(entry.finding.state not in ABSENT for entry in seen):
                continue
            held.add(key)
            said = absence(asked.need, seen) if len(seen) == len(machines) else None
            if said and self._store.data.waiting_for(asked.sweep, key):
                notices.setdefault(asked.sweep, []).append(said)
        self.held, self.notices = frozenset(held), notices


CAPACITY_SECONDS: Final = 3.0
"""How often the demand is told anew while nothing else happens."""
MOST_DEMANDED: Final = 256
TURN_SECONDS: Final = 15.0
"""How long one of the slots that no node was ever seen to hold is asked for; an autoscaler looks every 5 s."""


class Capacity:
    """The conductor's view of the cluster. A trial whose slot no node can hold waits, and does not hold up others."""

    def __init__(
        self, store: Store, writer: Writer, engine: Engine, quota: int | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._writer, self._engine, self._quota, self._now = store, writer, engine, quota, now
        self._began = now()
        self._alive: list[Node] | None = None
        self.notices: dict[int, list[str]] | None = None
        """Why trials wait, by sweep; none: nobody has looked yet."""
        self._looked = float("-inf")
        self.barred: frozenset[str] = frozenset()
        """The slots, as the database holds them, that no node which is there can hold."""

    def look(self, held: Collection[str] = frozenset(), limits: QuotaLimits = UNLIMITED, *, anew: bool = False) -> None:
        """Note what changed of the cluster and of what waits for it; `anew`: trials were added or changed.

        Nodes are not asked for by what waits for its data, whose needs are `held`, or for quotas, the `limits`.
        """
        nodes = self._engine.nodes()
        alive = None if nodes is None else sorted(nodes, key=lambda node: node.uid)
        changed = alive != self._alive or self.notices is None
        due = self._now() - self._looked > CAPACITY_SECONDS
        if not (changed or anew or due):
            return
        self._looked = self._now()
        if alive is None:
            self.barred = frozenset()
        elif changed:
            self._writer.capacity.note_nodes(alive)
        self._alive = alive
        if changed or anew or self.notices:
            self._judge()
        if alive is not None:
            self._engine.demand(self._demanded(held, limits))

    def _demanded(self, held: Collection[str], limits: QuotaLimits) -> list[Slot]:
        """What waits; of slots that no node was ever seen to hold one kind in turn, and none between two of them.

        Ray's second autoscaler starts nothing at all while one of the slots fits none of its kinds of nodes.
        """
        waiting, seen = (
            self._store.capacity.waiting_slots(MOST_DEMANDED, self._quota, held, limits),
            self._store.capacity.nodes(),
        )
        names = [slot.model_dump_json() for slot in waiting]
        kinds = dict(zip(names, waiting, strict=True))
        unknown = [name for name, slot in kinds.items() if not possible(slot, seen)]
        turn, mixed = int((self._now() - self._began) / TURN_SECONDS), len(unknown) < len(kinds)
        left_out = set(unknown)
        if unknown and not (mixed and turn % 2):
            left_out.remove(unknown[(turn // 2 if mixed else turn) % len(unknown)])
        return [slot for name, slot in zip(names, waiting, strict=True) if name not in left_out]

    def _judge(self) -> None:
        """Which slots have to wait, and what their sweeps say of it."""
        notices: dict[int, list[str]] = {}
        if self._alive is not None:
            asked = self._store.capacity.asked_slots()
            self.barred = frozenset(
                asked_slot.text for asked_slot in asked if not possible(asked_slot.slot, self._alive)
            )
            seen = self._store.capacity.nodes()
            for asked_slot in asked:
                # Another one that was here may come back: of that nobody needs to be told.
                reason = shortage(asked_slot.slot, seen) if asked_slot.text in self.barred else None
                labels = self._store.capacity.waiting_labels(asked_slot) if reason else None
                if reason and labels is not None:
                    notices.setdefault(asked_slot.sweep, []).append(f"{reason}; {self._said(asked_slot, labels)}")
        self.notices = notices

    def _said(self, one: AskedSlot, labels: Labels) -> str:
        try:
            of_it = where(Spec.model_validate(self._store.sweeps.get(one.sweep).spec), labels) if one.own else ""
        except ValueError:  # a spec of an earlier version: then it is not said of which trials
            of_it = ""
        return waiting(of_it)


QUOTA_SECONDS: Final = 5.0
"""How often hours are counted anew while nothing else happens, or after twenty times as long as counting takes."""
REST_TIMES: Final = 20.0
WAIT: Final = "its trials wait until hours are free again, or an administrator raises the quota"


class Quotas:
    """The conductor's view of them, some seconds old at most."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store, self._now = store, now
        self._next = float("-inf")
        self._counted: Counted | None = None
        self.limits: QuotaLimits = UNLIMITED
        self.notices: dict[int, list[str]] = {}
        """Why trials wait, by sweep; of slots nothing is said, since another training ends soon."""

    def look(self, *, anew: bool = False) -> None:
        """Count; `anew`: trials were added or changed, by which no hours are used yet."""
        began = self._now()
        rests = began < self._next
        if rests and not anew:
            return
        state = self._store.quotas.state(self._counted if rests else None)
        self._counted = state.counted
        if not rests:
            self._next = self._now() + max(QUOTA_SECONDS, REST_TIMES * (self._now() - began))
        self.limits = state.limits
        self.notices = {
            number: [f"{reason}; {WAIT}" for reason in reasons]
            for number, reasons in state.reasons.items()
            if self._store.claims.waits_of(number, state.limits.spent[number])
        }


log = logging.getLogger(__name__)


class Hindrances:
    """What the conductor has to pass over, and what is said of it on the sweeps that it hinders."""

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
        self._quotas = Quotas(store)
        self._told: dict[int, str] | None = None  # none: whatever an earlier conductor noted

    @property
    def barred(self) -> frozenset[str]:
        """The slots that no node which is there can hold, as the database holds them."""
        return self._capacity.barred

    @property
    def held(self) -> frozenset[str]:
        """The keys of the needs that no machine has, or that none has looked for yet."""
        return self._availability.held

    @property
    def limits(self) -> QuotaLimits:
        """What quotas keep from being begun."""
        return self._quotas.limits

    @property
    def stuck(self) -> bool:
        """Whether all that waits is hindered, so that there is nothing to give out."""
        return bool(self.full or self.barred or self.held or self.limits.spent) and not self._waits()

    @property
    def exclusions(self) -> Exclusions:
        """What of all that is passed over."""
        return Exclusions(
            barred=self.barred, held=self.held, racing=self._racing(), limits=self.limits, everything=bool(self.full)
        )

    def _waits(self) -> bool:
        of_hours = QuotaLimits(spent=self.limits.spent)  # for a slot of a quota it waits as for any other
        return self._store.claims.waits(replace(self.exclusions, limits=of_hours))

    @property
    def hopeless(self) -> bool:
        """Whether that is so until somebody does something: every machine has looked for what is asked."""
        return self.stuck and (bool(self.full) or self._availability.settled)

    def look_at_disks(self) -> None:
        """Hold what would write while a disk has too little room, and go on once it has."""
        full = disk.troubles(self._places)
        if full.keys() == self.full.keys():
            return  # the free bytes change all the time, and a notice is written to the database
        if full:
            log.warning("%s", disk.held(full))
        else:
            log.info("the disks have room again; going on")
        self.full = full

    def look(self, *, anew: bool = False) -> None:
        """Look at the machines, and say of each sweep why trials of it wait; `anew`: trials were added or changed."""
        self._availability.look(anew=anew)
        self._quotas.look(anew=anew)
        self._capacity.look(self.held, self.limits, anew=anew)
        lines: dict[int, list[str]] = {}
        full = {number: [disk.held(self.full)] for number in self._store.sweeps.open()} if self.full else {}
        for notices in (full, self._capacity.notices or {}, self._availability.notices, self._quotas.notices):
            for sweep, said in notices.items():
                lines.setdefault(sweep, []).extend(said)
        told = {sweep: "\n".join(said) for sweep, said in lines.items()}
        if told != self._told:
            self._writer.capacity.note_notices(told)
            self._told = told

    def lacking(self, order: Order) -> tuple[str, ...]:
        """The nodes on which an order is not to be begun."""
        return self._availability.lacking(order.need)

    def learn(self, order: Order, failure: Failure) -> None:
        """Look anew where a training found its data missing or damaged."""
        if failure.kind in ("missing", "damaged"):
            self._availability.doubt(order.need)
