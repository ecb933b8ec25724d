"""Why trials wait: a disk is full, no node can hold their slot, no machine has their data, or hours are used up."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.conduct.availability import Availability
from orchestrator.conduct.capacity import Capacity
from orchestrator.conduct.quotas import Quotas
from orchestrator.host import disk
from orchestrator.record.queue import Exclusions
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.views.accounts import QuotaLimits
from orchestrator.views.runs import Failure, Order

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
