"""The engine of a world: the product's dispatch and pool over its cluster; reports come late, or twice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.run.attempt import Workplace
from orchestrator.run.dispatch import Dispatch, Execution, Report
from orchestrator.run.engine import Broker
from orchestrator.run.inline import Inline
from orchestrator.run.ray.pool import PooledSlot, SlotPool
from orchestrator.spec.spec import Slot
from orchestrator.views.operations import MOST_TRAININGS, Node, SlotReport
from tests.simulation.cluster import Cluster


@dataclass
class Relay:
    """Follows an attempt; what it has handed on may be handed on again."""

    slot: str
    seen: int
    told: bool = False  # where its slot is


class Simulated(Inline):
    """As `RayTune`, without Tune."""

    def __init__(self, cluster: Cluster, workplace: Workplace) -> None:
        super().__init__(workplace)
        self._cluster, self._world = cluster, cluster.world
        self._pool: SlotPool | None = None
        self._dispatch: Dispatch | None = None
        self.unheard = 0.0  # the chance that a report is late, comes twice, or that its slot seems lost

    def run(self, broker: Broker) -> None:
        """Execute orders until there have been none for a while, or the broker is closing."""
        self._pool = SlotPool(broker, MOST_TRAININGS, self._workplace.edition)
        self._dispatch = Dispatch(broker, self._pool, self._workplace)
        relays: dict[str, Relay] = {}

        def follow(execution: Execution[PooledSlot]) -> None:
            relays[execution.order.attempt] = Relay(execution.slot.name, execution.seen)

        self._dispatch.serve(follow, lambda wait: self._reports(relays, wait))

    def _reports(self, relays: dict[str, Relay], wait: float) -> Iterator[Report]:
        self._world.sleep(wait)
        for attempt, relay in list(relays.items()):
            actor = self._cluster.actors.get(relay.slot)
            if actor is None or self._world.chance(self.unheard / 10):
                del relays[attempt]
                self._world.faults["slots that seem lost"] += actor is not None
                yield Report(attempt, lost="it does not answer")
                continue
            if self._world.chance(self.unheard):
                self._world.faults["late reports"] += 1
                continue
            lines = self._cluster.poll(actor, attempt, relay.seen)
            host = None if relay.told else actor.node
            relay.told = True
            if self._world.chance(self.unheard):
                self._world.faults["reports that come twice"] += 1
                yield Report(attempt, lines=lines, host=host)
            elif lines:
                relay.seen += len(lines)
            yield Report(attempt, lines=lines, host=host)
            if actor.attempt != attempt or (not actor.busy and relay.seen >= len(actor.messages)):
                relays.pop(attempt, None)

    def nodes(self) -> Sequence[Node] | None:  # type: ignore[override]
        """The nodes of the cluster."""
        return list(self._cluster.there)

    def slots(self) -> Sequence[SlotReport]:
        """The slots that this conductor knows."""
        return [] if self._pool is None else self._pool.reports(self._dispatch.seen if self._dispatch else {})

    def demand(self, waiting: Sequence[Slot]) -> None:
        """What waits, for the pool: nobody makes nodes here."""
        if self._pool is not None:
            self._pool.expect(waiting)
            self._pool.rest()

    def rest(self, broker: Broker) -> None:
        """End in time what an earlier conductor left idle."""
        if self._pool is None:
            self._pool = SlotPool(broker, MOST_TRAININGS, self._workplace.edition)
            self._pool.reap()

    def leave(self) -> None:
        """End the slots that train nothing."""
        if self._pool is not None:
            self._pool.rest(0.0)
