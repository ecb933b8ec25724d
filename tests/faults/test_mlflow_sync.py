"""A sweep is sent to MLflow again while the sender and MLflow's server are killed at random: every run exists once."""

import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from mlflow.tracking import MlflowClient

from api.local.processes import Child, end_processes
from orchestrator.record.store import Store
from tests.faults.conftest import MOMENTS, SOAK
from tests.mlflow_server import TOKEN, Gate, running
from tests.record.sample import lease, run_all, started
from tests.record.test_mirror import shown
from tests.record.test_recorder import settle

pytestmark = [pytest.mark.faults, *SOAK]

TELLER = """
import sys, time
from orchestrator.record.mlflow.client import MlflowTracker
from orchestrator.record.mlflow.mirror import Mirror
from orchestrator.record.store import Store
store = Store.open(sys.argv[1], migrate=False)
while (fence := store.lease.acquire(f"teller {time.time()}", 2.0)) is None:
    time.sleep(0.1)
writer = store.writer(fence)
mirror = Mirror(store, writer, lambda: MlflowTracker(sys.argv[2]))
while store.outbox.lag():
    writer.lease.renew(2.0)
    mirror.forward(3)
    time.sleep(0.01)
"""


def begun(*told: str) -> "subprocess.Popen[bytes]":
    """A process that mirrors a database to an MLflow, both given by address."""
    return subprocess.Popen([sys.executable, "-c", TELLER, *told])


class Mortal:
    """MLflow's server over a folder, which is started anew only where it was killed: a start costs seconds of CPU."""

    def __init__(self, home: Path) -> None:
        self._home, self._life = home, ExitStack()
        self._server: Child | None = None
        self.processes: set[psutil.Process] = set()
        """All that have ever been of it."""

    def alive(self) -> Child:
        """It, once it answers."""
        if self._server is None or self._server.exit_code() is not None:
            self.end()
            self._server = self._life.enter_context(running(self._home))
            self.processes.update(self._server.tree())
        return self._server

    def kill(self) -> None:
        """By SIGKILL."""
        server = self.alive()
        assert server.pid is not None
        end_processes(server.tree(), 0.0)
        while server.exit_code() is None:
            time.sleep(0.01)

    def end(self) -> None:
        """With all that it has left behind."""
        self._life.close()
        self._server = None


def test_both_ends_are_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    home, database = tmp_path / "mlflow", f"sqlite:///{tmp_path / 'metricsweep.db'}"
    home.mkdir()
    store = Store.open(database)
    fence = lease(store)
    sweep = started(store, fence, losses=["triplet", "semihard", "npair"], seeds=range(4))
    run_all(store, fence)
    settle(store, fence, sweep)
    store.writer(fence).lease.release()
    with Gate.served(tmp_path / "home", home / "mlflow.sock") as gate, ExitStack() as end:
        client, mlflow = MlflowClient(tracking_uri=gate.mlflow), Mortal(home)
        end.callback(mlflow.end)

        def tell(drawn: random.Random | None) -> None:
            """Until MLflow knows all; with a source of chance, killed at random moments of the work."""
            moments = sorted(drawn.sample(range(16), 2 if MOMENTS == 1 else 4)) if drawn else []
            while True:
                mlflow.alive()
                teller = begun(database, gate.mlflow)
                try:
                    moment = moments.pop() if moments else -1  # runs that are left
                    while teller.poll() is None and store.outbox.lag() > moment:
                        time.sleep(0.005)
                    if drawn is None or moment < 0:
                        assert teller.wait(300) == 0
                        return
                    time.sleep(drawn.uniform(0.0, 0.1))
                    if len(moments) % 2:
                        mlflow.kill()
                        time.sleep(drawn.uniform(0.0, 1.0))
                finally:  # else it would go on for ever, where a test has failed
                    teller.kill()
                    teller.wait()

        tell(None)
        whole = shown(client, store, sweep)
        assert len(whole) == 16
        for seed in range(MOMENTS):
            mlflow.alive()
            for run in client.search_runs([store.runs.experiment(sweep)])[seed::3]:
                client.delete_run(run.info.run_id)
            while (fence := store.lease.acquire(f"seed {seed}", 600.0)) is None:
                time.sleep(0.1)
            store.writer(fence).outbox.mirror_again(sweep)
            store.writer(fence).lease.release()
            tell(random.Random(seed))
            assert store.outbox.lag() == 0
            mlflow.alive()
            assert shown(client, store, sweep) == whole
    store.close()
    assert not [one for one in mlflow.processes if one.is_running()], "nothing of MLflow is left behind"
