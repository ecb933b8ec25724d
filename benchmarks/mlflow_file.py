"""MLflow's store in a file, which a conductor of a benchmark tells what `serve` would tell it."""

import time

from orchestrator.conduct.exhibits import Exhibits
from orchestrator.record.mlflow import new_store
from orchestrator.record.mlflow.backend_store import BackendStore
from orchestrator.record.mlflow.store_tracker import StoreTracker
from orchestrator.record.mlflow.told import Memory
from orchestrator.record.recorder import Recorder
from orchestrator.record.store import Store
from orchestrator.record.tracker import Tracker
from orchestrator.settings import Settings
from workers import catalog as catalogs


def tracker(settings: Settings) -> Tracker | None:
    """The tracker that writes into `settings.mlflow_store`, whose tables are made; none where it names no file."""
    file = settings.mlflow_store
    if file is None:
        return None
    if not new_store.make(file):
        raise SystemExit(f"the MLflow that is installed is not {new_store.VERSION}, whose store we can make")

    def refused(memory: Memory) -> Tracker:
        raise SystemExit("something was left to MLflow's server, which is not there")

    return StoreTracker(BackendStore(file), refused)


def tell(settings: Settings, tracker: Tracker) -> float:
    """Tell what is left when the conductor has ended; seconds that this took."""
    store = Store.open(settings.database)
    fence = store.lease.acquire("benchmark", 3_600.0)
    if fence is None:
        raise SystemExit("a conductor holds the lease")
    recorder = Recorder(store, store.writer(fence), tracker, Exhibits(store, catalogs.load(), settings.storage).of)
    began = time.perf_counter()
    while recorder.left():
        recorder.forward()
    store.close()
    return round(time.perf_counter() - began, 1)


def size(settings: Settings) -> int:
    """Bytes of the store, its log among them; 0 where there is none."""
    file = settings.mlflow_store
    return sum(one.stat().st_size for one in file.parent.glob(f"{file.name}*")) if file else 0
