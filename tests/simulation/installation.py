"""An installation in a world: a database, two conductors, a cluster, a tracker and clients, from trouble to rest."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from unittest.mock import patch

import sqlalchemy as sa

from orchestrator.conduct.conductor import Conductor
from orchestrator.conduct.expansion import PIECE, TURN
from orchestrator.host.cache import Cache
from orchestrator.record import schema
from orchestrator.record.mlflow.tracker import Artifacts
from orchestrator.record.store import Store
from orchestrator.run.attempt import Workplace
from orchestrator.run.files.engine import FileSlots
from orchestrator.run.files.pool import JoinedSlot
from orchestrator.run.ray.pool import PooledSlot
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from orchestrator.views.errors import FencedError, MetricsweepError
from orchestrator.views.operations import Node
from orchestrator.views.runs import Order
from orchestrator.views.states import SWEEP_ENDED, SweepState
from tests.simulation import heartbeats, training
from tests.simulation.clients import Client
from tests.simulation.cluster import Cluster
from tests.simulation.engine import Simulated
from tests.simulation.ground import Ground
from tests.simulation.invariants import Invariants
from tests.simulation.joining import Joining
from tests.simulation.shelf import Shelf
from tests.simulation.tracking import Tracking
from tests.simulation.transactions import Transactions
from tests.simulation.world import Process, World

CLOCKED = (Cache,)
LEASE_SECONDS = 6.0
MOST_TURNS = 60_000
"""Turns within which a world comes to rest once nothing disturbs it; the longest of thousands took a tenth."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """How often each kind of fault strikes, as a chance."""

    crashes: float = 0.006
    """Of a process, at a transaction: before it, before its commit, after it; while it sleeps or writes."""
    stalls: float = 0.004
    """Of a process, at a transaction: it stands still, longer than its lease at times."""
    stops: float = 0.002
    """Of a process, in the middle of a transaction that writes: nobody else can write meanwhile."""
    jumps: float = 0.002
    """That the clock of the machines, the database's too, is set back or forward, at a turn."""
    refusals: float = 0.004
    """That the database refuses a transaction."""
    unacknowledged: float = 0.0
    """That a transaction is committed, and who began it hears that it is not."""
    outlived: float = 0.0
    """That a conductor stands still for longer than its lease while it tells the tracker."""
    regrets: float = 0.0
    """That a client cancels a sweep and deletes it as soon as it may, in place of what it wished for."""
    unbegun: float = 0.0
    """That a conductor stands still for longer than its lease between noting an attempt and having its slot begin."""
    torn: float = 0.5
    """That a slot which is ended does not hear of it, and trains on for a while."""
    away: float = 0.2
    """The chance that the tracker does not answer, before or after it has applied a request."""
    lost: float = 0.05
    """The chance that the object store does not answer, before or after it has applied a request."""
    lies: float = 0.03
    """That it keeps a part of what it is given, or nothing, or gives what is damaged."""
    unheard: float = 0.2
    """That a report is late, or comes twice; a tenth of it: that a slot seems lost."""


USUAL = Trouble()
HARSH = Trouble(unacknowledged=0.002, outlived=0.003, regrets=0.05, unbegun=0.03)
"""With what came later, apart so that a seed's world of usual trouble is still what it was."""
QUIET = Trouble(*(0.0 for _ in fields(Trouble)))


class NoArtifacts:
    """Tables and figures are drawn from the same rows elsewhere: what a run shows is none of a world's business."""

    def __init__(self, *given: object) -> None:
        self.of: Callable[[int, bool], Artifacts] = lambda sweep, ended: Artifacts()


class Installation:
    """Made anew for each world; its processes share one store, whose transactions are each their own."""

    def __init__(self, world: World, ground: Ground, *, joined: bool = False, piece: int = PIECE) -> None:
        self.world, self.ground, self._catalog = world, ground, ground.catalog
        self._piece, self._turn = piece, piece if piece < PIECE else TURN
        self.transactions = Transactions(world, ground)
        folder = ground.cleared(world)
        self.settings = Settings(
            home=folder, train="tests.simulation.training:train", lease_seconds=LEASE_SECONDS, inspection=None
        )
        self.cluster = Cluster(world, [Node("a" * 56, "hall", {"CPU": 2.0}), Node("b" * 56, "lab", {"CPU": 1.0})])
        self.tracking = Tracking(world)
        self.store = Store(ground.database)
        self.joining = Joining(self.cluster, folder / "storage") if joined else None
        self.shelf = Shelf(world) if world.seed % 3 == 0 and not joined else None
        self.clients: list[Client] = []
        self.first: tuple[str, bytes] | None = None  # what a client submits first; none: it draws that
        self.shown: dict[str, tuple[str, bytes]] = {}  # of grids that finished, by what they tried: spec and table
        self.engines: dict[str, Simulated | FileSlots] = {}  # by conductor, those of today
        self._unheard = self._unbegun = 0.0

    @contextmanager
    def laws(self) -> Iterator[None]:
        """Those of the world, and what stands in it for the threads of a conductor, for Ray and for drawings."""
        conduct = "orchestrator.conduct"
        training.here[:] = [self.world]
        with (
            self.world.laws(CLOCKED),
            self.transactions.laws(),
            self.cluster.reached(),
            patch(f"{conduct}.conductor.Heartbeat", heartbeats.of(self.world, self.world.process)),
            patch(f"{conduct}.broker.MlflowArtifacts", NoArtifacts),
            self.shelf.reached(self.settings.home / "scratch") if self.shelf else nullcontext(),
            self.joining.laws() if self.joining else nullcontext(),
            patch.multiple(f"{conduct}.expansion", PIECE=self._piece, TURN=self._turn),
            patch.multiple("orchestrator.run.dispatch", TURN_SECONDS=0.5, WATCH_SECONDS=1.0, LINGER_SECONDS=4.0),
            self._between(PooledSlot),
            self._between(JoinedSlot),
        ):
            try:
                yield
            finally:
                self.world.end()

    def _between(self, holder: type[PooledSlot | JoinedSlot]) -> AbstractContextManager[object]:
        """Have a conductor that has noted an attempt stop, or stand still, before it tells the slot to begin it."""
        real: Callable[..., None] = holder.start

        def start(slot: PooledSlot | JoinedSlot, order: Order, workplace: Workplace) -> None:
            self.world.point("before it tells a slot to begin")
            if self.world.chance(self._unbegun):
                seconds = self.world.drawn.choice([4.0, 12.0, 25.0])
                self.world.stand_still(seconds, "before it tells a slot to begin", "stops before a slot is told")
            real(slot, order, workplace)

        return patch.object(holder, "start", start)

    def live(self, clients: Sequence[str], wishes: int, trouble: Trouble) -> Invariants:
        """A life: clients ask for things while faults strike, then nothing disturbs it any more; it comes to rest."""
        invariants = Invariants(self)
        self.world.looks.append(invariants.look)
        for name in clients:
            self._client(name, wishes)
        for name in ("first", "second"):
            self.conduct(name)
        if self.joining is not None:
            self.joining.begin()
        self.disturb(trouble)
        self.world.run(lambda: all(one.done for one in self.clients), MOST_TURNS)
        self.world.run(self._quiet_or(self.world.now + 12.0), MOST_TURNS)
        self.disturb(QUIET)
        self.world.tell("nothing disturbs any more")
        self.resume()
        self.world.run(self.rested, MOST_TURNS)
        invariants.at_rest()
        return invariants

    def disturb(self, trouble: Trouble) -> None:
        """How often each kind of fault strikes from now on."""
        world = self.world
        world.crashes, world.stalls, world.jumps = trouble.crashes, trouble.stalls, trouble.jumps
        self.transactions.refusals, self.transactions.stops = trouble.refusals, trouble.stops
        self.transactions.unacknowledged, self.tracking.outlived = trouble.unacknowledged, trouble.outlived
        if self.shelf is not None:
            self.shelf.away, self.shelf.lies = trouble.lost, trouble.lies
        self.cluster.torn, self.tracking.away = trouble.torn, trouble.away
        self._unheard, self._unbegun = trouble.unheard, trouble.unbegun
        for engine in self.engines.values():
            if isinstance(engine, Simulated):
                engine.unheard = trouble.unheard
        if self.joining is not None:
            self.joining.leaves = trouble.unheard / 20
        for client in self.clients:
            client.regrets = trouble.regrets

    def conduct(self, name: str, after: float = 0.0) -> None:
        """Begin a conductor, which begins anew whenever it ends."""
        process = Process(f"conductor {name}")
        engine: Simulated | FileSlots
        if self.joining is None:
            engine = Simulated(self.cluster, self._workplace())
            engine.unheard = self._unheard
        else:
            engine = FileSlots(self._workplace(), None)
        self.engines[name] = engine
        conductor = Conductor(self.settings, self.store, engine, self._catalog, lambda: self.tracking)

        def act() -> None:
            try:
                conductor.conduct()
            except FencedError:
                self.world.tell(f"{process.name} has lost its lease")
                self.world.kill(process, "by itself")

        process.farewell.append(lambda: self.conduct(name, self.world.drawn.choice([0.5, 2.0, 8.0])))
        self.world.begin(process, "", act, after)

    def resume(self) -> None:
        """Have what pauses go on: else nothing would ever end."""
        service = self._service()
        person = Process("a person", mortal=False)

        def act() -> None:
            while True:
                with suppress(MetricsweepError):  # such as that a conductor stands still in the middle of a transaction
                    for sweep in self._paused():
                        service.commands.resume(sweep)
                self.world.sleep(5.0)

        self.world.begin(person, "", act)

    def _paused(self) -> list[int]:
        with self.store.database.reading() as connection:
            query = sa.select(schema.sweep.c.id).where(schema.sweep.c.state == SweepState.PAUSED)
            return list(connection.execute(query).scalars())

    def rested(self) -> bool:
        """Whether all requests are done and recorded, and no paused process may still act."""
        if self.joining is not None and any(one.busy for one in self.cluster.actors.values()):
            return False  # a request to stop, where Ray would kill it
        if self.world.now < self.world.awake or not all(one.done for one in self.clients):
            return False
        if self.store.requests.pending() or self.store.sweeps.active() or self.store.outbox.lag():
            return False
        with self.store.database.reading() as connection:
            states = set(connection.execute(sa.select(schema.sweep.c.state)).scalars())
            runs = connection.execute(sa.select(schema.attempt.c.id).where(schema.attempt.c.state == "running")).first()
        return states <= set(SWEEP_ENDED) and runs is None

    def tables(self, sweep: int) -> bytes:
        """The table of a sweep, as a person downloads it."""
        return self._service().tables.render(sweep, "main", "csv").content

    def _quiet_or(self, until: float) -> Callable[[], bool]:
        return lambda: self.rested() or self.world.now > until

    def _client(self, name: str, wishes: int) -> None:
        process = Process(f"client {name}")
        service = self._service()
        client = next((one for one in self.clients if one.name == name), None)
        if client is None:
            client = Client(self.world, service, name, wishes, self.first)
            self.clients.append(client)
        client.service = service
        process.farewell.append(lambda: self._client(name, wishes))
        self.world.begin(process, "", client.live, self.world.drawn.choice([0.0, 1.0]))

    def _service(self) -> Service:
        return Service(self.settings, self.store, self._catalog)

    def _workplace(self) -> Workplace:
        return Workplace(self.settings.train, self.settings.storage, self.settings.data_root)
