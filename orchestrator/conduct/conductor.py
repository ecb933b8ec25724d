"""The conductor: takes the lease, has an engine work for as long as it holds it, and gives it back."""

import logging
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from orchestrator.conduct.broker import TICK_SECONDS, LeasedBroker
from orchestrator.conduct.chores import Chores
from orchestrator.conduct.heartbeat import Heartbeat
from orchestrator.conduct.notifier import Notifier
from orchestrator.conduct.standby import Standby
from orchestrator.conduct.webhook import Webhook
from orchestrator.host.disk import is_disk_error
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.store import Store, Writer
from orchestrator.run.engine import Engine
from orchestrator.settings import Settings
from orchestrator.views.errors import UnavailableError
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
