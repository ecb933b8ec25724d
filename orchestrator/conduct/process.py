"""The conductor as a process: over the store, the engine and the tracker that the settings name."""

import importlib
import logging
import sys
from functools import partial

from orchestrator.conduct.conductor import Conductor
from orchestrator.host import storage
from orchestrator.host.identity import made_for, prove
from orchestrator.host.private import own_folder
from orchestrator.host.traces import begin_tracing, end_tracing
from orchestrator.record.mlflow import new_store
from orchestrator.record.mlflow.backend_store import BackendStore
from orchestrator.record.mlflow.login import OwnServer
from orchestrator.record.mlflow.store_tracker import StoreTracker
from orchestrator.record.mlflow.told import Memory
from orchestrator.record.store import Store
from orchestrator.record.tracker import Tracker
from orchestrator.run.attempt import Workplace
from orchestrator.run.engine import Engine, Site
from orchestrator.run.engine_names import engine_named
from orchestrator.run.memory_growth import Allowance
from orchestrator.secrets import Secrets
from orchestrator.settings import Settings
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


def _tracker(settings: Settings) -> Tracker | None:
    if not settings.mlflow_url:
        return None
    own = None
    if settings.mlflow_socket:  # the API of this home passes it on
        identity = made_for(settings.resolved_home)
        own = OwnServer(identity.mlflow_password, partial(prove, settings.mlflow_url, identity))
    login = partial(getattr, Secrets(settings), "mlflow_login")
    login()  # what was never there is told at the start

    def served(memory: Memory) -> Tracker:
        module = importlib.import_module("orchestrator.record.mlflow.client")  # with all of MLflow: seconds
        tracker: Tracker = module.MlflowTracker(settings.mlflow_url, own, login, memory)
        return tracker

    if settings.mlflow_store is None:
        return served(Memory())
    if not new_store.make(settings.mlflow_store):
        log.info("MLflow's server makes its store itself: it is another release than the one that we know")
    return StoreTracker(BackendStore(settings.mlflow_store), served)
