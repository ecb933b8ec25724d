"""The capacity: which nodes there are, which slots none of them can hold, and what the cluster is asked for."""

import time
from collections.abc import Callable, Collection
from typing import Final

from orchestrator.plan.data import waiting
from orchestrator.plan.parse import where
from orchestrator.record.capacity import AskedSlot
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.spec.axes import Slot
from orchestrator.spec.spec import Spec
from orchestrator.views.accounts import UNLIMITED, QuotaLimits
from orchestrator.views.operations import Node, possible, shortage
from orchestrator.views.runs import Labels

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
