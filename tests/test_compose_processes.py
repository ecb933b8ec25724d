"""The commands of docker-compose.yml as processes here: a sweep over two workers outlives the active conductor."""

import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import make_url

from api.client import Client
from api.local.processes import MARK, end_processes, marked
from orchestrator.host.slot_environment import NICENESS
from orchestrator.views.states import TrialState
from tests.compose_file import COMPOSE, ROOT, load
from tests.faults.installation import node_address
from tests.ports import free_port
from tests.record.conftest import new_postgres_database, postgres_server  # noqa: F401  a fixture
from tests.served import PARTS, UNHURRIED, until

pytestmark = [pytest.mark.postgres, pytest.mark.ray, pytest.mark.soak]

SPEC = {**UNHURRIED, "name": "composed", "recipe": {**UNHURRIED["recipe"], "iterations": 300}, "repeat": {"seed": [0]}}
CONDUCTORS = ("conductor", "conductor-standby")
WORKERS = ("ray-worker", "ray-worker=2")
"""What `docker compose up --scale ray-worker=2` starts."""
STARTS = ("mlflow", "ray-head", "api", *CONDUCTORS, *WORKERS)


class Composed:
    """The compose file's services as processes; names and ports of its network become those of this machine."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.token = folder, secrets.token_hex(16)
        ports = {name: free_port() for name in ("ray", "api")}
        given = {"POSTGRES_PASSWORD": "here", "RAY_AUTH_TOKEN": secrets.token_hex(32), "METRICSWEEP_TOKEN": self.token}
        given |= {"METRICSWEEP_LEASE_SECONDS": "12", "RAY_WORKER_CPUS": "1"}
        self._services = load(COMPOSE, given)["services"]
        self.api = f"http://127.0.0.1:{ports['api']}"
        self._marks = {name: secrets.token_hex(16) for name in STARTS}
        head = f"{node_address()}:{ports['ray']}"  # Ray's nodes join one another by an address that is not loopback
        self._here = {
            self._services["conductor"]["environment"]["METRICSWEEP_DATABASE_URL"]: database,
            "ray-head:6379": head,
            "--port=6379": f"--port={ports['ray']}",
            "http://api:8787": f"http://127.0.0.1:{ports['api']}",
            "/run/mlflow/": f"{folder}/",
            "0.0.0.0": "127.0.0.1",
            "127.0.0.1:8787": f"127.0.0.1:{ports['api']}",
            "/home/metricsweep/service": str(folder / "home"),
            "sqlite:////mlflow/": f"sqlite:///{folder}/",
            "=/mlflow/": f"={folder}/",
            "/storage": str(folder / "storage"),
            "/data": str(folder / "data"),
        }
        self._port = str(ports["api"])

    def start(self, name: str) -> None:
        environment = self._environment(name) | {MARK: self._marks[name]}
        command = [self._translated(word) for word in self._service(name)["command"]]
        with (self.folder / f"{name}.log").open("ab") as log:
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def healthy(self, name: str) -> bool:
        """What Docker would ask."""
        _, *command = [self._translated(word) for word in self._service(name)["healthcheck"]["test"]]
        asked = subprocess.run(command, env=self._environment(name), capture_output=True, timeout=60, check=False)
        return asked.returncode == 0

    def kill(self, name: str) -> None:
        """SIGKILL for every process of one service: what a killed container is."""
        end_processes(marked(self._marks[name]), 0.0)

    def end(self) -> None:
        for name in reversed(STARTS):
            self.kill(name)

    def log(self, name: str) -> str:
        file = self.folder / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def mirrored(self) -> Counter[str]:
        """The number of runs of each kind in MLflow, through the API as the conductors reach it."""
        url, headers = f"{self.api}/mlflow/api/2.0/mlflow", {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(headers=headers, trust_env=False, timeout=60) as asked:
            found = asked.post(f"{url}/experiments/search", json={"max_results": 9}).raise_for_status().json()
            ids = [one["experiment_id"] for one in found["experiments"]]
            runs = asked.post(f"{url}/runs/search", json={"experiment_ids": ids}).raise_for_status().json()
        tags = [tag for run in runs.get("runs", []) for tag in run["data"]["tags"]]
        return Counter(tag["value"] for tag in tags if tag["key"] == "metricsweep.kind")

    def active(self) -> str:
        """The conductor that took the lease last."""
        fences = {name: re.findall(r"holding the lease with fence (\d+)", self.log(name)) for name in CONDUCTORS}
        return max((name for name in CONDUCTORS if fences[name]), key=lambda name: int(fences[name][-1]), default="")

    def _service(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._services[name.partition("=")[0]]
        return found

    def _translated(self, word: str) -> str:
        for there, here in self._here.items():
            word = word.replace(there, here)
        return word

    def _environment(self, name: str) -> dict[str, str]:
        told = {key: self._translated(value) for key, value in self._service(name).get("environment", {}).items()}
        if "METRICSWEEP_PORT" in told:
            told["METRICSWEEP_PORT"] = self._port
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("METRICSWEEP_", "RAY_"))}
        kept[NICENESS] = os.environ[NICENESS]  # theirs, unlike all else that is Ray's
        # Ray's folder is this test's own: its socket paths must stay short, and other Rays live in the default one.
        here = {"PATH": path, "PYTHONPATH": str(ROOT), "RAY_TMPDIR": str(self.folder), "no_proxy": "*"}
        here["METRICSWEEP_PARTS"] = str(PARTS)
        return {**kept, **here, **told}


@pytest.fixture
def composed(postgres_server: str) -> Iterator[Composed]:  # noqa: F811
    url = new_postgres_database(postgres_server)
    assert make_url(url).drivername == "postgresql+psycopg"
    with tempfile.TemporaryDirectory(prefix="ms-", ignore_cleanup_errors=True) as folder:  # its path is short
        services = Composed(Path(folder), url)
        try:
            yield services
        finally:
            services.end()


def test_a_sweep_outlives_the_active_conductor(composed: Composed) -> None:
    # One by one: Ray's nodes of one machine take each other's sockets when they start at once.
    for name in STARTS[: -len(WORKERS)]:
        composed.start(name)
        if name != "mlflow":
            until(lambda asked=name: composed.healthy(asked), f"{name} is healthy")
        if name in CONDUCTORS:
            until(lambda asked=name: "holds the lease" in composed.log(asked) or composed.active() == asked, name)
    assert composed.healthy("mlflow")
    client = Client(composed.api, composed.token)
    hold = composed.folder / "hold"  # while it is there a training takes 150 s, so that the second one may begin late
    hold.touch()
    loss = {"name": "unhurried", "seconds": 0.06, "held": str(hold)}
    sweep = client.submit(yaml.safe_dump({**SPEC, "recipe": {**SPEC["recipe"], "loss": loss}}).encode()).id
    until(lambda: client.sweep(sweep).state == "running", "the conductor has expanded the sweep")
    for name in WORKERS:  # late: what no node can hold yet waits, and does not fail
        composed.start(name)
        until(lambda asked=name: "Ray runtime started" in composed.log(asked), f"{name} has joined")

    def both_train() -> bool:
        return sum(trial.step > 0 for trial in client.trials(sweep, TrialState.RUNNING)) == 2

    until(both_train, "both slots train")
    active = composed.active()
    (standby,) = set(CONDUCTORS) - {active}
    assert "standing by" in composed.log(standby)
    composed.kill(active)
    until(lambda: "going on with them" in composed.log(standby), "the standby took over")
    hold.unlink()
    until(lambda: client.sweep(sweep).ended is not None, "the sweep ended")
    ended = client.sweep(sweep)
    assert (ended.state, ended.counts.finished) == ("finished", 2), composed.log(standby)[-3000:]
    trials = [client.trial(trial.id) for trial in client.trials(sweep)]
    assert Counter(len(trial.attempts) for trial in trials) == {1: 2}, "no trial was trained twice"
    assert composed.healthy(standby)
    assert composed.healthy("api")
    until(lambda: composed.mirrored() == {"sweep": 1, "cell": 2, "trial": 2}, "MLflow knows of all of it")
