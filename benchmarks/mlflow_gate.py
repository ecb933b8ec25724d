"""What our gate adds to a request of MLflow's: milliseconds, and CPU of the API, for a batch of metrics.

    python -m benchmarks.mlflow_gate [requests]

Starts a real MLflow on its socket and a real API before it, as processes, over a temporary home. The same batches go
directly to the socket and through the API, in turns.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import httpx
import psutil

from api.local.command_lines import inherited_environment, mlflow_server, settings_environment
from api.local.process import Child, ChildSpec
from orchestrator.host.identity import made_for
from orchestrator.settings import Settings
from tests.ports import free_port

METRICS = 30


def main(requests: int) -> None:
    with tempfile.TemporaryDirectory(prefix="ms-") as folder:
        home = Path(folder) / "home"
        settings = Settings(home=home, port=free_port(), mlflow_socket=Path(folder) / "s")
        identity = made_for(home)
        assert settings.mlflow_socket is not None
        environment = {**inherited_environment(own_mlflow=True), **settings_environment(settings)}
        mlflow = Child(mlflow_server(home, settings.mlflow_socket), home / "mlflow.log")
        command = (sys.executable, "-m", "api")
        api = Child(ChildSpec("api", command, port=settings.port, health="/healthz"), home / "api.log")
        try:
            for child in (mlflow, api):
                child.start(environment)
                while not child.is_ready():
                    time.sleep(0.1)
            transport = httpx.HTTPTransport(uds=str(settings.mlflow_socket))
            direct = httpx.Client(transport=transport, base_url="http://localhost")
            login = {"Authorization": f"Bearer {identity.mlflow_password}"}
            gate = httpx.Client(base_url=f"{settings.address}/mlflow", headers=login, trust_env=False)
            run = made(direct)
            for client in (direct, gate):
                sent(client, run, 20)
            process = psutil.Process(api.pid)
            before = sum(process.cpu_times()[:2])
            times: dict[str, list[float]] = {"direct": [], "gate": []}
            for _ in range(requests // 20):
                times["direct"] += sent(direct, run, 20)
                times["gate"] += sent(gate, run, 20)
            cpu = (sum(process.cpu_times()[:2]) - before) / len(times["gate"])
            for name, each in times.items():
                print(f"{name:6}  median {1e3 * statistics.median(each):5.1f} ms  of {len(each)} batches")
            print(f"CPU of the API: {1e3 * cpu:.2f} ms a request")
        finally:
            for child in (api, mlflow):
                child.end(Event())


def made(client: httpx.Client) -> str:
    """A run in a new experiment."""
    experiment = client.post("/api/2.0/mlflow/experiments/create", json={"name": "measured"}).json()
    run = client.post("/api/2.0/mlflow/runs/create", json=experiment).json()
    return str(run["run"]["info"]["run_id"])


def sent(client: httpx.Client, run: str, count: int) -> list[float]:
    """Seconds of each of some batches."""
    return [timed(lambda: batch(client, run)) for _ in range(count)]


def batch(client: httpx.Client, run: str) -> None:
    """Thirty metrics, each with a time and a step of its own."""
    now = time.time_ns()
    points = [{"key": f"m{n}", "value": 0.5, "timestamp": now // 10**6, "step": now % 10**9} for n in range(METRICS)]
    client.post("/api/2.0/mlflow/runs/log-batch", json={"run_id": run, "metrics": points}).raise_for_status()


def timed(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
