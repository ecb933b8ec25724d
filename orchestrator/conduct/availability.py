"""The availability of data: which machines have what trainings need, and which trials wait until one has."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestrator.plan.data import ABSENT, absence
from orchestrator.record.capacity import AskedNeed
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.views.operations import Inspected, Node
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
