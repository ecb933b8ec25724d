"""The conductor: takes the lease, runs an engine while it holds it, and gives it back."""

import importlib
import logging
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from orchestrator.conduct.broker import TICK_SECONDS, LeasedBroker, Tick
from orchestrator.conduct.lease import Heartbeat, Standby
from orchestrator.conduct.webhook import Notifier, Webhook
from orchestrator.host import storage
from orchestrator.host.disk import is_disk_error
from orchestrator.host.files import own_folder
from orchestrator.host.identity import ensure_identity, prove
from orchestrator.host.tracing import begin_tracing, end_tracing
from orchestrator.publish import papers
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.store import Store, Writer
from orchestrator.run.attempt import Allowance, Workplace
from orchestrator.run.engine import Engine, Site, engine_named
from orchestrator.settings import Secrets, Settings
from orchestrator.views.errors import UnavailableError
from workers import catalog as catalogs
from workers.catalog import Catalog

log = logging.getLogger(__name__)

SEND_SECONDS: Final = 1.0  # how often the helper threads send what is new
DRAIN_SECONDS: Final = 15.0
PATIENCE_SECONDS: Final = 10.0
"""How long the conductor waits for each helper thread when it ends."""


def conduct(settings: Settings, *, until_idle: bool) -> int:
    """Serve the queue until SIGTERM, or until the queue is empty; returns the exit status."""
    own_folder(settings.resolved_home)
    begin_tracing("conductor", settings.traces_url)
    catalog = catalogs.LiveCatalog.at(settings.parts, papers.check)
    engine = _engine(settings)
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


class Conductor:
    """Runs sweeps as the only writer of the database. Only the heartbeats run in another thread."""

    def __init__(
        self, settings: Settings, store: Store, engine: Engine, catalog: Catalog, tracker: Callable[[], Tracker] | None
    ) -> None:
        self._settings, self._store, self._engine, self._catalog = settings, store, engine, catalog
        self._tracker, self._webhook = tracker, Webhook.named_by(settings)
        self._closing = False

    def conduct(self, *, until_idle: bool = False) -> None:
        """Take the lease and serve until closed; with `until_idle`, until nothing is left to train."""
        seconds = self._settings.lease_seconds
        writer = Standby(self._store, seconds).take_lease(lambda: self._closing)
        if writer is None:
            return
        tick = Tick(self._settings, self._store, writer, self._engine, self._catalog, self._tracker)
        lease = Heartbeat("lease", partial(writer.lease.renew, seconds), seconds / 3)
        sends: dict[str, Callable[[], object]] = {"mirror": partial(tick.mirror.forward, 50)} if tick.mirror else {}
        if self._webhook:
            sends["webhook"] = Notifier(self._store, writer, self._webhook, self._settings.address).forward
        helpers = {name: Heartbeat(name, partial(_repeated, send), SEND_SECONDS) for name, send in sends.items()}
        lease.start()
        for heartbeat in helpers.values():
            heartbeat.start()
        try:
            self._serve(LeasedBroker(self._store, writer, tick, lease, lambda: self._closing), tick, until_idle)
        finally:
            self._end_engine(writer)
            for name, heartbeat in helpers.items():
                if heartbeat.end(PATIENCE_SECONDS):
                    _drain(name, sends[name], self._store.outbox.lag if name == "mirror" else int)
            lease.end(PATIENCE_SECONDS)
            if not lease.lost.is_set():
                self._release(writer)

    def close(self, *_: object) -> None:
        """Ask `conduct` to return soon; trainings on slots continue. Also a signal handler."""
        self._closing = True

    def handle_signals(self) -> None:
        """Close on SIGTERM and SIGINT."""
        signal.signal(signal.SIGTERM, self.close)
        signal.signal(signal.SIGINT, self.close)

    def _serve(self, broker: LeasedBroker, tick: Tick, until_idle: bool) -> None:
        ran, wait_reasons = True, tick.wait_reasons
        while not broker.closing():
            try:
                # Settle what the run left, and write the next rows of a large sweep, without waiting for the next tick.
                if ran or tick.expanding:
                    broker.hurry()
                ran = False
                broker.tick()
                orphans = broker.adopt()
                if orphans:
                    log.info("%d attempts were left running; going on with them", orphans)
                if orphans or (self._store.sweeps.active() and not wait_reasons.stuck):
                    ran = True
                    self._engine.run(broker)
                else:
                    self._engine.rest(broker)
                settled = not ran and not tick.expanding
                if until_idle and (not self._store.sweeps.active() or (wait_reasons.hopeless and settled)):
                    break
            except (UnavailableError, OSError) as error:
                if not isinstance(error, UnavailableError | ConnectionError) and not is_disk_error(error):
                    raise
                log.warning("holding, nothing is requeued: %s", error)
                time.sleep(2.0)
            if not tick.expanding:
                time.sleep(TICK_SECONDS / 2)
        broker.check_lease()

    def _release(self, writer: Writer) -> None:
        """Give the lease back; if the database does not answer, the lease expires by itself."""
        try:
            writer.lease.release()
        except UnavailableError as error:
            log.warning("the lease is not given back, and runs out: %s", error)

    def _end_engine(self, writer: Writer) -> None:
        """Log whatever fails in the engine: the lease has to be given back."""
        try:
            if writer.lease.renew(self._settings.lease_seconds):  # else the slots may be another conductor's by now
                self._engine.leave()
        except Exception:
            log.exception("idle slots stay")
        try:
            self._engine.close()
        except Exception:
            log.exception("the engine did not close")


def _repeated(send: Callable[[], object]) -> bool:
    send()
    return True


def _drain(name: str, send: Callable[[], object], left: Callable[[], int]) -> None:
    """Send what is left, within a limit of time; the next conductor sends the rest."""
    deadline = time.monotonic() + DRAIN_SECONDS
    try:
        while time.monotonic() < deadline and send():
            pass
        if runs := left():
            log.warning("%d runs are not mirrored to MLflow yet; the next start mirrors them", runs)
    except Exception as error:  # the lease has to be given back
        log.warning("%s: not everything is sent; the next start sends the rest: %s", name, error)


def _tracker(settings: Settings) -> Callable[[], Tracker] | None:
    """A factory of the tracker, or `None` if no MLflow is configured."""
    if not settings.mlflow_url:
        return None
    # With a socket, MLflow belongs to this home and is reached through the API.
    identity = ensure_identity(settings.resolved_home) if settings.mlflow_socket else None
    login = partial(getattr, Secrets(settings), "mlflow_login")
    login()  # report a missing secret file now

    def make() -> Tracker:
        module = importlib.import_module("orchestrator.record.mlflow.client")  # imports MLflow, which takes seconds
        proof = identity and partial(prove, settings.mlflow_url, identity)
        own = identity and module.OwnServer(identity.mlflow_password, proof)
        tracker: Tracker = module.MlflowTracker(settings.mlflow_url, own, login)
        return tracker

    return make
