"""`metricsweep serve` as a process, over a home of its own: what tests that only use a service share."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from api.client import Client
from orchestrator.host.identity import ensure_identity
from orchestrator.host.slot_environment import NICENESS
from tests.ports import free_port

PATIENCE = 300.0
PARTS = Path(__file__).parent / "parts"
"""What tests add to the catalog: a loss that takes its time without computing."""

PLANTED: Final = frozenset({
    "yaml", "pydantic", "sqlalchemy", "alembic", "uvicorn", "fastapi", "starlette", "httpx", "jinja2", "typer", "rich",
    "psutil", "ray", "optuna", "mlflow", "numpy", "pandas", "pyarrow", "torch", "torchvision", "sklearn", "scipy",
    "faiss", "PIL", "filelock", "click", "setproctitle", "grpc", "msgpack", "google", "flask", "sitecustomize",
    "usercustomize",
})  # fmt: skip
"""What others bring of what our processes import, and what Python looks for at its start."""


UNHURRIED: Final[dict[str, Any]] = {
    "version": 1,
    "name": "killed",
    "recipe": {
        "dataset": "digits",
        "backbone": {"name": "mlp", "width": 16},
        "embedding": 16,
        "loss": "unhurried",
        "sampler": {"name": "balanced", "classes": 4, "per_class": 8},
        "iterations": 400,
        "validation": {"name": "class_holdout", "folds": 3, "fold": 0},
    },
    "compare": {"regularizer": ["none", "sec"]},
    "repeat": {"seed": [0, 1]},
    "slot": {"cpus": 1, "gpus": 0},
}
"""A sweep whose trainings last without computing."""


@dataclass(frozen=True)
class Served:
    """A running service: a client that may ask it, its process and its home folder."""

    client: Client
    process: psutil.Process
    home: Path
    planted: Path
    """The file that lists the modules of the service's current folder that were run: it must never be made."""


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Served]:
    """Serve a home with a short lease, the tests' parts and further settings, until the block ends."""
    port = free_port()
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("METRICSWEEP_", "RAY_"))}
    plain[NICENESS] = os.environ[NICENESS]  # theirs, unlike all else that is Ray's
    command = [sys.executable, "-P", "-m", "api.cli", "serve", "--home", str(home), "--port", str(port)]
    log_path = home / "serve.out"
    current, planted = home.with_name(f"{home.name}-current"), home.with_name(f"{home.name}-planted.txt")
    plant(current, planted)
    with log_path.open("w") as log:
        environment = {**plain, "METRICSWEEP_LEASE_SECONDS": "4", "METRICSWEEP_PARTS": str(PARTS), **settings}
        process = subprocess.Popen(command, cwd=current, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: "Ctrl-C" in log_path.read_text(), "serve is ready", process)
        with Client(f"http://127.0.0.1:{port}", ensure_identity(home).secret) as client:
            yield Served(client, psutil.Process(process.pid), home, planted)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def plant(folder: Path, mark: Path, but: Collection[str] = ()) -> None:
    """Fill a folder with modules of the names that processes import, each of which writes its name to `mark`.

    `but` are names that are left out.
    """
    folder.mkdir()
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")} | PLANTED
    program = f"open({str(mark)!r}, 'a').write(__name__ + chr(10))\n"
    for name in names.difference(but):
        (folder / f"{name}.py").write_text(program)


def until(true: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something holds, while `process` lives."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert process is None or process.poll() is None, f"serve ended before {what}"
        assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain: {what}"
        time.sleep(0.25)  # each look costs the server, and often a walk over all processes, tens of milliseconds


def conductor_of(serve: psutil.Process, besides: int = 0) -> psutil.Process | None:
    """The conductor of a service, unless it is the process with the id `besides`."""
    for child in serve.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            line = child.cmdline()
            if "orchestrator" in line and "conduct" in line and child.pid != besides:
                return child
    return None
