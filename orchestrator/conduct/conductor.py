"""The conductor: claims queued sweeps, has them run and settles them; it only sequences."""

import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.conduct.finalization import Finalization
from orchestrator.conduct.heartbeat import Heartbeat
from orchestrator.conduct.hindrances import Hindrances
from orchestrator.conduct.intake import Intake
from orchestrator.conduct.pruning import Pruning
from orchestrator.conduct.renewal import Renewal
from orchestrator.conduct.requests import Requests
from orchestrator.conduct.retries import Retries
from orchestrator.conduct.searches import Searches
from orchestrator.plan import grid
from orchestrator.publish import formats
from orchestrator.publish.tables import table
from orchestrator.record.reads.sweeps import QueuedSweep
from orchestrator.record.recorder import Recorder
from orchestrator.record.store import Store, Writer
from orchestrator.record.tracker import Tracker
from orchestrator.record.writes.standby import Standby
from orchestrator.run.engine import Engine
from orchestrator.run.message import Message
from orchestrator.settings import Settings
from orchestrator.spec.spec import Spec
from orchestrator.views import events
from orchestrator.views.errors import FOR_ALL, FencedError, MetricsweepError, UnavailableError
from orchestrator.views.orders import Failure, Order
from workers.catalog import Catalog, usual_needs

log = logging.getLogger(__name__)

TICK_SECONDS: Final = 0.5
MIRROR_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 15.0
TABLE_FORMATS: Final = ("latex", "markdown", "html", "csv", "json")


class Conductor:
    """The broker that engines work for. All but the two heartbeats happens in the thread that calls `conduct`."""

    def __init__(
        self, settings: Settings, store: Store, engine: Engine, catalog: Catalog, tracker: Tracker | None
    ) -> None:
        self._settings, self._store, self._engine, self._catalog = settings, store, engine, catalog
        self._tracker = tracker
        self._closing = False
        self._ticked = 0.0
        self._orphans: list[Order] = []
        self._retries = Retries()

    def conduct(self, *, until_idle: bool = False) -> None:
        """Take the lease and serve until closed; with `until_idle`, until nothing more can be trained."""
        writer = self._take_lease()
        if writer is None:
            return
        self._begin(writer)
        lease = Heartbeat("lease", self._renew, self._settings.lease_seconds / 3)
        mirror = Heartbeat("mirror", self._forward, MIRROR_SECONDS)
        self._lease = lease
        lease.start()
        mirror.start()
        try:
            self._serve(until_idle)
        finally:
            self._end_engine()
            mirror.end()
            self._drain()
            lease.end()
            if not lease.lost.is_set():
                self._writer.lease.release()

    def _begin(self, writer: Writer) -> None:
        """Make what writes as the holder of the lease; it begins with what the database says, not with what it knew."""
        settings, store, catalog = self._settings, self._store, self._catalog
        self._writer = writer
        self._recorder = Recorder(store, writer, self._tracker, self._tables, settings.address)
        self._searches = Searches(store, writer, catalog)
        self._finalization = Finalization(store, writer, catalog)
        self._renewal = Renewal(store, writer, catalog)
        self._pruning = Pruning(store, writer, catalog, self._renewal)
        self._hindrances = Hindrances(store, writer, self._engine, usual_needs(catalog), settings.owner_slots)
        self._requests = Requests(store, writer, catalog, self._tracker, settings.storage, self._renewal)
        self._intake = Intake(self._recorder, self._retries, self._pruning, self._hindrances)

    def close(self, *_: object) -> None:
        """Ask `conduct` to return soon; what trains on a slot trains on. Also a signal handler."""
        self._closing = True

    def _end_engine(self) -> None:
        """Whatever fails in it, the lease is given back all the same."""
        try:
            if self._renew():  # else the engine's slots may be another conductor's by now
                self._engine.leave()
        except Exception:
            log.exception("idle slots stay")
        try:
            self._engine.close()
        except Exception:
            log.exception("the engine did not close")

    def handle_signals(self) -> None:
        """Close on SIGTERM and SIGINT."""
        signal.signal(signal.SIGTERM, self.close)
        signal.signal(signal.SIGINT, self.close)

    # What an engine asks and tells: the Broker protocol.

    def installation(self) -> str:
        """The UUID of this database, which its next conductor finds too."""
        return self._writer.lease.installation()

    def closing(self) -> bool:
        """True once asked to end, or once another conductor holds the lease."""
        return self._closing or self._lease.lost.is_set()

    def tick(self) -> None:
        """Apply requests, expand queued sweeps and settle what ended, at most twice a second."""
        if time.monotonic() - self._ticked < TICK_SECONDS:
            return
        if self._lease.lost.is_set():
            raise FencedError("another conductor holds the lease")
        self._renewal.renew()  # before anything of an older release is given out, adopted or judged
        queued, requests = self._store.sweeps.queued(), self._store.requests.pending()
        for sweep in queued:  # first, so that a request finds trials
            self._expand(sweep)
        for request in requests:
            if not self._requests.apply(request):
                continue
            if request.kind == "retry":
                self._retries.forget()
            self._pruning.forget()
        self._pruning.refresh()
        added = self._search()
        for ended in self._finalization.settle(force=not self._ticked):
            self._settle(ended)
        self._hindrances.look(anew=bool(queued or requests or added))
        self._ticked = time.monotonic()

    def next_order(self) -> Order | None:
        """An order that an earlier conductor left running, else the next waiting training."""
        if self._orphans:
            return self._orphans.pop(0)
        order = self._claim()
        if order is None and self._search():
            order = self._claim()
        return order

    def _claim(self) -> Order | None:
        order = self._writer.claims.next(*self._turn())
        return order and replace(order, lacking=self._hindrances.lacking(order))

    def _turn(self) -> tuple[int | None, frozenset[str], frozenset[str], frozenset[str]]:
        """Who may not be given out next: over the quota, at rest after a loss, without room, without data."""
        hindrances = self._hindrances
        return self._settings.owner_slots, self._retries.resting(), hindrances.barred, hindrances.held

    def wanted(self, order: Order) -> bool:
        """Whether any trial still wants the order's training."""
        return self._store.claims.wanted(order.attempt)

    def started(self, order: Order, holder: str, host: str) -> None:
        """Note the slot that trains the order."""
        self._intake.started(order, holder, host)

    def told(self, order: Order, message: Message) -> None:
        """Read a message, the first and only time, and record what it says."""
        self._intake.told(order, message)

    def failed(self, order: Order, failure: Failure) -> None:
        """Record a failure, and whether it is tried again."""
        self._intake.failed(order, failure)

    def stopped(self, order: Order) -> None:
        """Record that an order stopped unwanted."""
        self._intake.stopped(order)

    def outranked(self, order: Order) -> bool:
        """Whether another of a higher priority waits, or only paused sweeps want the order."""
        return self._store.claims.outranked(order.attempt, *self._turn())

    def returned(self, order: Order, reason: str) -> None:
        """Record that an order was not begun, and why."""
        self._intake.returned(order, reason)
        self._hindrances.look(anew=True)

    # Sequencing.

    def _serve(self, until_idle: bool) -> None:
        ran = True
        while not self.closing():
            try:
                if ran:  # settle at once what it left; while all waits, a large sweep is only looked through at times
                    self._ticked, ran = 0.0, False
                self.tick()
                self._orphans = self._store.claims.orphans()
                if self._orphans:
                    log.info("%d attempts were left running; going on with them", len(self._orphans))
                if self._orphans or (self._store.sweeps.active() and not self._hindrances.stuck):
                    ran = True
                    self._engine.run(self)
                else:
                    self._engine.rest(self)
                if until_idle and (
                    not self._store.sweeps.active() or (self._hindrances.hopeless and not ran)
                ):  # settled
                    break
            except (UnavailableError, ConnectionError) as error:
                log.warning("holding, nothing is requeued: %s", error)
                time.sleep(2.0)
            time.sleep(TICK_SECONDS / 2)
        if self._lease.lost.is_set():
            raise FencedError("another conductor holds the lease")

    def _take_lease(self) -> Writer | None:
        """What the holder of the lease writes with; none when asked to close before it was free."""
        holder = f"{socket.gethostname()}:{os.getpid()}"
        told, standby = False, Standby()
        while not self._closing:
            lapsed = standby.lapsed(self._store.lease.held())
            fence = self._store.lease.acquire(holder, self._settings.lease_seconds, lapsed)
            if fence is not None:
                log.info("holding the lease with fence %d", fence)
                return self._store.writer(fence)
            if not told:
                log.info("another conductor holds the lease; standing by")
                told = True
            time.sleep(min(1.0, self._settings.lease_seconds / 5))
        return None

    def _renew(self) -> bool:
        return self._writer.lease.renew(self._settings.lease_seconds)

    def _forward(self) -> bool:
        self._recorder.forward(50)
        return True

    def _drain(self) -> None:
        """Before leaving, tell the tracker what is left; what it does not take now, the next conductor tells it."""
        deadline = time.monotonic() + DRAIN_SECONDS
        try:
            while time.monotonic() < deadline and self._recorder.forward(50):
                pass
        except Exception as error:  # the lease is given back all the same
            log.warning("the tracker was not told everything: %s", error)

    def _search(self) -> bool:
        added = self._searches.advance()
        if added:
            self._pruning.grown()
        return added

    def _expand(self, queued: QueuedSweep) -> None:
        try:
            spec = Spec.model_validate(queued.spec)
            plan = grid.expand(spec, self._catalog)
            self._writer.sweeps.start(queued.id, plan.cells, plan.candidates, plan.trials(), spec.slot, spec.fresh)
        except FOR_ALL:
            raise
        except Exception as error:  # whatever a spec is wrong in, others are expanded
            log.exception("sweep %d cannot be expanded", queued.id)
            said = str(error) if isinstance(error, MetricsweepError) else f"{type(error).__name__}: {error}"
            self._writer.sweeps.fail(queued.id, f"cannot be expanded: {said}")

    def _settle(self, ended: events.CellSettled | events.SweepSettled) -> None:
        try:
            self._recorder.record(ended)
        except FOR_ALL:
            raise
        except Exception:  # the others are settled all the same, and this one is tried again
            log.exception("sweep %d cannot be settled", ended.sweep)

    def _tables(self, sweep: int) -> Mapping[str, bytes]:
        """A sweep's tables as files, for its summary run in the tracker."""
        outcomes = self._store.outcomes.of(sweep)
        files: dict[str, bytes] = {}
        for name in outcomes.spec["tables"]:
            built = table.build(outcomes, name, self._catalog)
            for format_name in TABLE_FORMATS:
                rendered = formats.render(built, format_name)
                files[f"tables/{name}/{rendered.filename}"] = rendered.content
        return files
