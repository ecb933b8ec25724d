"""The conductor: takes the lease, runs an engine while it holds it, and gives it back."""

import importlib
import logging
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from orchestrator.conduct.broker import TICK_SECONDS, Chores, LeasedBroker
from orchestrator.conduct.lease import Heartbeat, Standby
from orchestrator.conduct.webhook import Notifier, Webhook
from orchestrator.host import storage
from orchestrator.host.disk import is_disk_error
from orchestrator.host.files import own_folder
from orchestrator.host.identity import made_for, prove
from orchestrator.host.tracing import begin_tracing, end_tracing
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.store import Store, Writer
from orchestrator.run.attempt import Allowance, Workplace
from orchestrator.run.engine import Engine, Site, engine_named
from orchestrator.settings import Secrets, Settings
from orchestrator.views.errors import UnavailableError
from workers import catalog as catalogs
from workers.catalog import Catalog

log = logging.getLogger(__name__)

MIRROR_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 15.0
PATIENCE_SECONDS: Final = 10.0
"""How long a thread beside has to come back from what it does, once the conductor leaves."""


class Conductor:
    """The one writer. All but the heartbeats happens in the thread that calls `conduct`."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        engine: Engine,
        catalog: Catalog,
        tracker: Callable[[], Tracker] | None,
    ) -> None:
        self._settings, self._store, self._engine, self._catalog = settings, store, engine, catalog
        self._tracker, self._webhook = tracker, Webhook.named_by(settings)
        self._closing = False

    def conduct(self, *, until_idle: bool = False) -> None:
        """Take the lease and serve until closed; with `until_idle`, until nothing more can be trained."""
        seconds = self._settings.lease_seconds
        writer = Standby(self._store, seconds).take_lease(lambda: self._closing)
        if writer is None:
            return
        chores = Chores(self._settings, self._store, writer, self._engine, self._catalog, self._tracker)
        lease = Heartbeat("lease", partial(writer.lease.renew, seconds), seconds / 3)
        notifier = self._webhook and Notifier(self._store, writer, self._webhook, self._settings.address)
        mirror = chores.mirror
        beside = [Heartbeat("mirror", partial(_forward, mirror), MIRROR_SECONDS)] if mirror else []
        beside += [Heartbeat("webhook", notifier.beat, MIRROR_SECONDS)] if notifier else []
        lease.start()
        for heartbeat in beside:
            heartbeat.start()
        try:
            self._serve(LeasedBroker(self._store, writer, chores, lease, lambda: self._closing), chores, until_idle)
        finally:
            self._end_engine(writer)
            for heartbeat in beside:
                heartbeat.end(PATIENCE_SECONDS)
            if mirror:
                _drain(mirror)
            if notifier:
                notifier.drain()
            lease.end()
            if not lease.lost.is_set():
                self._release(writer)

    def close(self, *_: object) -> None:
        """Ask `conduct` to return soon; what trains on a slot trains on. Also a signal handler."""
        self._closing = True

    def handle_signals(self) -> None:
        """Close on SIGTERM and SIGINT."""
        signal.signal(signal.SIGTERM, self.close)
        signal.signal(signal.SIGINT, self.close)

    def _serve(self, broker: LeasedBroker, chores: Chores, until_idle: bool) -> None:
        ran, hindrances = True, chores.hindrances
        while not broker.closing():
            try:
                # Settle at once what it left, and write the next pieces; else a large sweep is only looked through at
                # times.
                if ran or chores.expanding:
                    broker.hurry()
                ran = False
                broker.tick()
                orphans = broker.adopt()
                if orphans:
                    log.info("%d attempts were left running; going on with them", orphans)
                if orphans or (self._store.sweeps.active() and not hindrances.stuck):
                    ran = True
                    self._engine.run(broker)
                else:
                    self._engine.rest(broker)
                settled = not ran and not chores.expanding
                if until_idle and (not self._store.sweeps.active() or (hindrances.hopeless and settled)):
                    break
            except (UnavailableError, OSError) as error:
                if not isinstance(error, UnavailableError | ConnectionError) and not is_disk_error(error):
                    raise
                log.warning("holding, nothing is requeued: %s", error)
                time.sleep(2.0)
            if not chores.expanding:
                time.sleep(TICK_SECONDS / 2)
        broker.check_lease()

    def _release(self, writer: Writer) -> None:
        """Give the lease back; while the database is away, the next conductor waits until it has run out."""
        try:
            writer.lease.release()
        except UnavailableError as error:
            log.warning("the lease is not given back, and runs out: %s", error)

    def _end_engine(self, writer: Writer) -> None:
        """Whatever fails in it, the lease is given back all the same."""
        try:
            if writer.lease.renew(self._settings.lease_seconds):  # else its slots may be another conductor's by now
                self._engine.leave()
        except Exception:
            log.exception("idle slots stay")
        try:
            self._engine.close()
        except Exception:
            log.exception("the engine did not close")


def _forward(mirror: Mirror) -> bool:
    mirror.forward(50)
    return True


def _drain(mirror: Mirror) -> None:
    """Before leaving, tell the tracker what is left; what it does not take now, the next conductor tells it."""
    deadline = time.monotonic() + DRAIN_SECONDS
    try:
        while time.monotonic() < deadline and mirror.forward(50):
            pass
        if left := mirror.left():
            log.warning("MLflow is still to be told of %d runs; the next start tells it", left)
    except Exception as error:  # the lease is given back all the same
        log.warning("MLflow was not told everything, which the next start does: %s", error)


def conduct(settings: Settings, *, until_idle: bool, when_told: bool = False) -> int:
    """Serve the queue until SIGTERM, or until there is nothing more; `when_told` by a line on the standard input.

    0, or 1 where nobody is left to tell.
    """
    own_folder(settings.resolved_home)
    begin_tracing("conductor", settings.traces_url)
    catalog = catalogs.LiveCatalog.at(settings.parts)
    engine = _engine(settings)  # an engine's library may take seconds to load
    if when_told and not sys.stdin.readline():
        return 1  # who was to tell is gone
    storage.opened(settings.storage).check()
    store = Store.of(settings)
    conductor = Conductor(settings, store, engine, catalog, _tracker(settings))
    conductor.handle_signals()
    log.info("serving the queue")
    try:
        conductor.conduct(until_idle=until_idle)
    finally:
        store.close()
        end_tracing()
    return 0


def _engine(settings: Settings) -> Engine:
    """The engine that the settings name."""
    workplace = Workplace(
        train=settings.train,
        storage=settings.storage,
        data=settings.data_root.absolute(),
        parts=settings.parts,
        inspect=settings.inspection,
        allowance=Allowance(settings.slot_growth),
        edition=catalogs.edition(catalogs.load(settings.parts)),
    )
    site = Site(workplace, settings.resolved_home / "tune", settings.ray_address or None, settings.slots)
    return engine_named(settings.engine, site)


def _tracker(settings: Settings) -> Callable[[], Tracker] | None:
    """Makes the tracker; None where no MLflow is named."""
    if not settings.mlflow_url:
        return None
    # Behind the socket is the MLflow of this home, which the API passes on.
    identity = made_for(settings.resolved_home) if settings.mlflow_socket else None
    login = partial(getattr, Secrets(settings), "mlflow_login")
    login()  # a secret's file that is missing is reported at the start

    def make() -> Tracker:
        module = importlib.import_module("orchestrator.record.mlflow.client")  # imports MLflow, which takes seconds
        proof = identity and partial(prove, settings.mlflow_url, identity)
        own = identity and module.OwnServer(identity.mlflow_password, proof)
        tracker: Tracker = module.MlflowTracker(settings.mlflow_url, own, login)
        return tracker

    return make
