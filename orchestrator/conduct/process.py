"""The conductor as a process: over the store, the engine and the tracker that the settings name."""

import importlib
import logging
import sys
from collections.abc import Callable
from functools import partial

from orchestrator.conduct.conductor import Conductor
from orchestrator.host import storage
from orchestrator.host.files import own_folder
from orchestrator.host.identity import made_for, prove
from orchestrator.host.tracing import begin_tracing, end_tracing
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.record.store import Store
from orchestrator.run.attempt import Allowance, Workplace
from orchestrator.run.engine import Engine, Site, engine_named
from orchestrator.settings import Secrets, Settings
from workers import catalog as catalogs

log = logging.getLogger("orchestrator")


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
