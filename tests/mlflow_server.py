"""A real MLflow as `serve` starts it, on a Unix socket and no port, and a server of ours that passes on to it."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import httpx
from pydantic import SecretStr

from api.local.processes import MARK, Child, end_processes, inherited_environment, marked, mlflow_server
from api.main import create_app
from orchestrator.host.identity import Identity, ensure_identity
from orchestrator.record.mlflow.tracker import Tracker
from orchestrator.service.service import Service
from orchestrator.settings import Settings
from tests.served_app import served

Another = Callable[[], Tracker]
"""Makes trackers that know nothing of what others sent."""

TOKEN = "a-token-of-the-tests"


@contextmanager
def running(home: Path) -> Iterator[Child]:
    """The server over a folder; it answers on `<folder>/mlflow.sock`."""
    child, mark = Child(mlflow_server(home, home / "mlflow.sock"), home / "mlflow.log"), uuid.uuid4().hex
    child.start({**inherited_environment(), MARK: mark})
    try:
        deadline = time.monotonic() + 120
        while not child.is_ready():
            assert child.exit_code() is None, child.log.last_lines(40)
            assert time.monotonic() < deadline, child.log.last_lines(40)
            time.sleep(0.1)
        yield child
    finally:
        child.end(Event())
        end_processes(marked(mark), 0.0)  # of a server that was killed the worker lives on


@dataclass(frozen=True)
class Gate:
    """Where MLflow is reached through our own server, and where without it."""

    address: str
    socket: Path | None
    home: Path

    @classmethod
    @contextmanager
    def served(cls, home: Path, socket: Path | None, **more: Any) -> "Iterator[Gate]":
        """A server of its own over a fresh home."""
        settings = Settings(home=home, token=SecretStr(TOKEN), mlflow_socket=socket, **more)
        service = Service.open(settings)
        try:
            with served(create_app(service, settings)) as address:
                yield cls(address, socket, home)
        finally:
            service.close()

    @property
    def identity(self) -> Identity:
        """Whose it is."""
        return ensure_identity(self.home)

    @property
    def password(self) -> str:
        """What a notebook is given."""
        return self.identity.mlflow_password

    @property
    def mlflow(self) -> str:
        """The environment of an `mlflow` client."""
        return f"{self.address}/mlflow"

    def client(self, **headers: str) -> httpx.Client:
        """A program that holds the token."""
        told = {"Authorization": f"Bearer {TOKEN}", **headers}
        return httpx.Client(base_url=self.address, headers=told, trust_env=False, timeout=60)

    def behind(self) -> httpx.Client:
        """Past the gate: what only processes of the serving user can do."""
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(transport=transport, base_url="http://localhost", timeout=60)


def told(client: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    """The answer to a POST of MLflow's API; `path` is what follows `/api/2.0/mlflow/`."""
    prefix = "" if client.base_url.host == "localhost" else "/mlflow"
    answer = client.post(f"{prefix}/api/2.0/mlflow/{path}", json=body)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


@contextmanager
def over_socket(app: Any, socket: Path) -> Iterator[None]:
    """Any application in the place of MLflow, for what MLflow would not tell."""
    with served(app, uds=str(socket)):
        yield
